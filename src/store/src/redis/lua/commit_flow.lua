-- Writes what a report changes, unless the flow has changed since the version that was read.
local flow, report, progress, out, lapsing, named = unpack(KEYS)
local id, version, call, until_at, lapses_at, standing, fetch, fetched = unpack(ARGV, 2, 9)
local name, payload, ends, node, origin, address, tells, webhook = unpack(ARGV, 10, 17)
if not alive(flow) then return {'overtaken'} end
if redis.call('HGET', report, 'y') == call then return {'done', redis.call('HGET', report, 'i')} end
if redis.call('HGET', flow, 'z') ~= version then return {'overtaken'} end
-- An upstream may report the same consent or fetch under two flows; a key has one webhook.
if webhook == '1' then
  local owner = redis.call('GET', named)
  if owner and owner ~= id then return {'taken'} end
  redis.call('SET', named, id, 'PXAT', until_at)
end

redis.call('HINCRBY', flow, 'z', 1)
redis.call('HSET', flow, 'u', until_at)
if fetch ~= '' then
  redis.call('HSET', flow, 'd' .. fetch, fetched)
else
  redis.call('HSET', flow, 's', standing, 'l', name)
  -- Polls show the new report instead of this one.
  redis.call('DEL', progress)
  line_up(lapsing, id, lapses_at, until_at)
end
redis.call('PEXPIREAT', flow, until_at)
-- A key has one webhook at most, whatever the domain decided.
if alive(report) then return {'done', false} end
redis.call('HSET', report, 'r', payload, 'u', ends, 'y', call)
if origin == '' then
  redis.call('PEXPIREAT', report, ends)
  return {'done', false}
end
local queued = queue(out, node, id .. name, origin)
-- It has no time to live until its delivery has ended.
redis.call('HSET', report, 'i', queued, 'v', text(now), 'g', origin, 'h', address)
redis.call('HSET', flow, 'w' .. name, tells)
return {'done', queued}
