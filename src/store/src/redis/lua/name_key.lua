-- The digest under a key's id, which is the first that was written.
redis.call('SET', KEYS[1], ARGV[2], 'NX')
return redis.call('GET', KEYS[1])
