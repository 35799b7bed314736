-- Forgets a node, unless it has sent a heartbeat meanwhile.
local beats = KEYS[1]
local node, beat = unpack(ARGV, 2, 3)
if redis.call('ZSCORE', beats, node) ~= beat then return 0 end
return redis.call('ZREM', beats, node)
