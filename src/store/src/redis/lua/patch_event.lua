local event, registrations, waiting, events_of_app, ends_of_app = unpack(KEYS)
local id_text, before, terms, active, expires_at, max_guests, origin, webhook = unpack(ARGV, 2, 9)
local not_after, keep_event, keep_scan = unpack(ARGV, 10, 12)
if not alive(event) then return {'gone'} end

local function counts(word)
  local fields = redis.call('HMGET', event, 'r', 'n', 'b')
  fields[4] = redis.call('ZCOUNT', waiting, '-inf', text(now))
  return {word, fields}
end

local kept = redis.call('HMGET', event, 's', 'r', 'i')
if kept[1] == terms then return counts('patched') end
-- The event must still be as it was read.
local decided = kept[1] == before and tonumber(kept[2]) <= tonumber(max_guests)
if not decided or (not_after ~= '' and now >= tonumber(not_after)) then return {'changed'} end
redis.call('HSET', event, 's', terms, 'y', active, 'x', expires_at, 'm', max_guests)
if origin ~= '' then
  redis.call('HSET', event, 'o', origin, 'h', webhook)
else
  redis.call('HDEL', event, 'o', 'h')
end
-- It is kept for its time after its end, and never ends before its scans.
local gone_at = tonumber(expires_at) + tonumber(keep_event)
local last = redis.call('ZRANGE', waiting, -1, -1, 'WITHSCORES')
if last[2] then gone_at = math.max(gone_at, tonumber(last[2]) + tonumber(keep_scan)) end
gone_at = text(gone_at)
for _, key in ipairs({event, registrations, waiting}) do redis.call('PEXPIREAT', key, gone_at) end
redis.call('ZADD', ends_of_app, gone_at, kept[3] .. id_text)
for _, key in ipairs({events_of_app, ends_of_app}) do redis.call('PEXPIREAT', key, gone_at, 'GT') end
return counts('patched')
