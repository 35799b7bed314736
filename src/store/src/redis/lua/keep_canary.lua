local canary = KEYS[1]
local found, fresh = unpack(ARGV, 2, 3)
-- If another node was faster, the caller reads it again.
if (redis.call('GET', canary) or '') ~= found then return 0 end
redis.call('SET', canary, fresh)
return 1
