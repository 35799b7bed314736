local lease = KEYS[1]
local holder, lasting = unpack(ARGV, 2, 3)
if alive(lease) and redis.call('GET', lease) ~= holder then return 0 end
redis.call('SET', lease, holder, 'PXAT', text(now + lasting))
return 1
