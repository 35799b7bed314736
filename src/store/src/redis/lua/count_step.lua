-- The second command makes this a step of several commands.
redis.call('SET', KEYS[2], text(now))
return redis.call('INCR', KEYS[1])
