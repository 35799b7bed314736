local now_kept = redis.call('HGET', KEYS[1], 'r')
if now_kept == ARGV[3] then return 1 end
if now_kept ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'r', ARGV[3])
return 1
