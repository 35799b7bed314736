redis.call('SET', KEYS[1], text(now), 'PX', ARGV[2])
return 1
