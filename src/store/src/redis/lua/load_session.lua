if not seen(KEYS[1]) then return false end
return redis.call('HMGET', KEYS[1], 'u', 'x', 's')
