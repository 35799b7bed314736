local since = '(' .. text(now - ARGV[2])
return redis.call('ZRANGE', KEYS[1], '+inf', since, 'BYSCORE', 'REV')
