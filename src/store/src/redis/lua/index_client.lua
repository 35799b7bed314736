return redis.call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[3])
