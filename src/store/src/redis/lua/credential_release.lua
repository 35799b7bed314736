-- Restores the memory from before, unless another call has written one since.
local memory, before = ARGV[2], ARGV[3]
if redis.call('GET', KEYS[1]) ~= memory then return 0 end
if before == '' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], before, 'PXAT', string.sub(before, 34))
return 1
