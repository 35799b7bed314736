local txn, out, event, registrations, waiting = unpack(KEYS)
local id, node, passed, outcome, answer, replayed, result_ttl, channel = unpack(ARGV, 2, 9)
local txn_text, event_text, call, publish = ARGV[10], ARGV[11], ARGV[15], ARGV[16]
-- Outcomes by the number of the refusal; empty ones were not given.
local instead = {['0'] = ARGV[12], ['1'] = ARGV[13], ['2'] = ARGV[14]}

if given and not alive(txn) then return {'unknown'} end
-- The fields of a transaction record come first.
local found = redis.call('HMGET', txn, 'c', 'a', 'e', 'o', 'x', 's', 'v', 'p', 'f', 'd', 'r', 'u', 'g', 'y', 'i', 'h', 'm')
local of_event, expires_at, ended = found[3], found[5], found[10]
local until_at, origin, ended_by = found[12], found[13], found[14]

local function record(word, queued, address)
  return {word, {unpack(found, 1, 11)}, queued or false, address or false}
end

if not found[1] or (until_at and now >= tonumber(until_at)) then return {'unknown'} end
if ended and ended_by == call then return record('completed', found[15], found[16]) end
if ended then return record(ended == answer and 'repeated' or 'before') end
if now >= tonumber(expires_at) then return {'expired'} end
if replayed == '1' then return {'replayed'} end
-- Its event never changes, but the caller may not know it.
if (of_event or '') ~= event_text then return {'event', of_event} end

local refused, registered = nil, false
if of_event then
  if alive(event) then
    if passed == '1' then refused = refusal(event) end
    registered = passed == '1' and not refused
    -- A scan that was counted as abandoned can be answered only if the clock was set back.
    if redis.call('ZREM', waiting, id) == 0 then redis.call('HINCRBY', event, 'b', -1) end
  elseif passed == '1' then
    refused = '1'
  end
end
if refused then
  passed = '0'
  if instead[refused] ~= '' then outcome = instead[refused] end
end
local ends = text(now + tonumber(result_ttl))
redis.call('HSET', txn, 'v', text(now), 'p', passed, 'd', answer, 'r', outcome, 'u', ends, 'y', call)
if refused then redis.call('HSET', txn, 'f', refused) end
found[7], found[8], found[9], found[10], found[11] = text(now), passed, refused or false, answer, outcome
local address
if registered then
  redis.call('HINCRBY', event, 'r', 1)
  redis.call('RPUSH', registrations, id .. text(now) .. ' ' .. outcome)
  redis.call('PEXPIREAT', registrations, redis.call('PEXPIRETIME', event))
  if not origin then
    local target = redis.call('HMGET', event, 'o', 'h')
    origin, address = target[1], target[2]
    if origin then redis.call('HSET', txn, 'g', origin, 'h', address) end
  end
end
local queued
if origin and not refused then
  queued = queue(out, node, id, origin)
  redis.call('HSET', txn, 'i', queued)
  -- It stays until its delivery has ended.
  redis.call('PERSIST', txn)
else
  redis.call('PEXPIREAT', txn, ends)
end
tell_others(found[17], node, publish, channel, txn_text)
return record('completed', queued, address)
