if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'n', ARGV[2], 't', ARGV[3], 'b', '0', 's', '0')
return 1
