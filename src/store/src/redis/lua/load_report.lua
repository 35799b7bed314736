if not seen(KEYS[1]) then return false end
return redis.call('HGET', KEYS[1], 'r')
