-- The digest under a key's name, which is the first that was given.
redis.call('SET', KEYS[1], ARGV[2], 'NX')
return redis.call('GET', KEYS[1])
