local flow, client, idempotency, progress, lapsing = unpack(KEYS)
local id, app, standing, payload, name, until_at, lapses_at, request, answer, replayed_until = unpack(ARGV, 2, 11)
if alive(flow) then return {'opened'} end
local before = repetition(idempotency, request)
if before then return before end
if redis.call('EXISTS', client) == 0 then return {'no client'} end
redis.call('HSET', flow, 'a', app, 's', standing, 'z', '0', 'u', until_at)
if payload ~= '' then
  redis.call('HSET', flow, 'l', name)
  redis.call('HSET', progress, 'r', payload, 'u', until_at)
  redis.call('PEXPIREAT', progress, until_at)
end
redis.call('PEXPIREAT', flow, until_at)
line_up(lapsing, id, lapses_at, until_at)
keep(idempotency, id, request, answer, replayed_until)
return {'opened'}
