local field, before, after = unpack(ARGV, 2, 4)
if redis.call('HEXISTS', KEYS[1], 'r') == 0 then return 0 end
local kept = redis.call('HGET', KEYS[1], field) or ''
if kept == after then return 1 end
if kept ~= before then return 0 end
redis.call('HSET', KEYS[1], field, after)
return 1
