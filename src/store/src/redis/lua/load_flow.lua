local flow, fetch = KEYS[1], ARGV[2]
if not seen(flow) then return false end
local fields = redis.call('HMGET', flow, 's', 'd' .. fetch, 'z', 'u', 'l')
fields[6] = text(now)
return fields
