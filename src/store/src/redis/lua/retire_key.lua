local key = KEYS[1]
if redis.call('EXISTS', key) == 0 then return false end
retire(key, ARGV[2], ARGV[3])
return redis.call('HMGET', key, 'i', 'c', 'l', 'e', 't', 'x', 'v')
