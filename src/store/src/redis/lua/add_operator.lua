return redis.call('HSETNX', KEYS[1], ARGV[2], ARGV[3])
