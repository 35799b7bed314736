local at, sealed, most, ends = unpack(ARGV, 2, 5)
alive(KEYS[1])
redis.call('ZADD', KEYS[1], at, sealed)
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - most)
redis.call('PEXPIREAT', KEYS[1], ends, 'GT')
redis.call('PEXPIREAT', KEYS[1], ends, 'NX')
return 1
