local event, client, idempotency, events_of_app, ends_of_app = unpack(KEYS)
local id, id_text, client_id, app, created_at, expires_at, max_guests, active = unpack(ARGV, 2, 9)
local origin, webhook, terms, gone_at, most, request, answer, replayed_until = unpack(ARGV, 10, 17)
if alive(event) then return {'created'} end
local before = repetition(idempotency, request)
if before then return before end
if redis.call('EXISTS', client) == 0 then return {'no client'} end
if most ~= '' and redis.call('ZCOUNT', ends_of_app, '(' .. text(now), '+inf') >= tonumber(most) then return {'limit'} end
local order = string.format('%012d', redis.call('HINCRBY', client, 'i', 1))
redis.call('HSET', event, 'c', client_id, 'a', app, 't', created_at, 'i', order, 's', terms, 'y', active, 'x', expires_at,
  'm', max_guests, 'r', '0', 'n', '0', 'b', '0')
if origin ~= '' then redis.call('HSET', event, 'o', origin, 'h', webhook) end
redis.call('PEXPIREAT', event, gone_at)
redis.call('ZADD', events_of_app, created_at, order .. id_text)
redis.call('ZADD', ends_of_app, gone_at, order .. id_text)
for _, key in ipairs({events_of_app, ends_of_app}) do
  redis.call('PEXPIREAT', key, gone_at, 'NX')
  redis.call('PEXPIREAT', key, gone_at, 'GT')
end
-- Some events whose time has passed are removed from the list; readers of the list remove the rest.
local gone = redis.call('ZRANGE', ends_of_app, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 16)
if #gone > 0 then
  redis.call('ZREM', events_of_app, unpack(gone))
  redis.call('ZREM', ends_of_app, unpack(gone))
end
keep(idempotency, id, request, answer, replayed_until)
return {'created'}
