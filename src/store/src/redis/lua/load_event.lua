local event, waiting = unpack(KEYS)
if not seen(event) then return false end
local fields = redis.call('HMGET', event, 'c', 'a', 't', 's', 'r', 'n', 'b')
fields[8] = redis.call('ZCOUNT', waiting, '-inf', text(now))
fields[9] = text(now)
return fields
