local txn, client, ledger, idempotency, event, waiting, registrations, ends_of_app, events_of_app = unpack(KEYS)
local id, client_id, app, event_id, opened_at, expires_at, terms, origin = unpack(ARGV, 2, 9)
local cost, effect, grace, request, answer, replayed_until, node = unpack(ARGV, 10, 16)

local function opened()
  local account = redis.call('HMGET', client, 'b', 's')
  return {'opened', account[1] or '0', account[2] or '0'}
end

if alive(txn) then return opened() end
local before = repetition(idempotency, request)
if before then return before end
if event_id ~= '' then
  if not alive(event) then return {'no event'} end
  local owner = redis.call('HMGET', event, 'c', 'a', 'i')
  if owner[1] ~= client_id or owner[2] ~= app then return {'no event'} end
  -- A suspended client takes no guests.
  local refused = redis.call('HEXISTS', client, 'z') == 1 and '0' or refusal(event)
  if refused then return {'refused', refused} end
end
local balance, entries = move(client, ledger, 'd', cost, effect, id)
if not balance then return {'unpaid'} end

-- A late one is kept for the grace period as well, so that a repetition finds it.
local gone_at = text(math.max(tonumber(expires_at), now) + tonumber(grace))
local fields = {'HSET', txn, 'c', client_id, 'a', app, 'o', opened_at, 'x', expires_at, 's', terms, 'm', node}
for name, value in pairs({g = origin, e = event_id}) do
  if value ~= '' then
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
end
redis.call(unpack(fields))
if event_id ~= '' then
  redis.call('HINCRBY', event, 'n', 1)
  -- Scans whose window has passed since the last scan are added to the count.
  local passed = redis.call('ZREMRANGEBYSCORE', waiting, '-inf', text(now))
  redis.call('HINCRBY', event, 'b', passed)
  redis.call('ZADD', waiting, expires_at, id)
  redis.call('PEXPIREAT', waiting, redis.call('PEXPIRETIME', event))
  -- The event outlives its scans.
  for _, key in ipairs({event, waiting, registrations, ends_of_app, events_of_app}) do
    redis.call('PEXPIREAT', key, gone_at, 'GT')
  end
  local member = redis.call('HGET', event, 'i') .. event_id
  redis.call('ZADD', ends_of_app, 'XX', 'GT', gone_at, member)
end
redis.call('PEXPIREAT', txn, gone_at)
keep(idempotency, id, request, answer, replayed_until)
return {'opened', balance, entries}
