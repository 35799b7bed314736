-- Forgets a node, unless it has sent a heartbeat meanwhile.
local beats, schemas = unpack(KEYS)
local node, beat = unpack(ARGV, 2, 3)
if redis.call('ZSCORE', beats, node) ~= beat then return 0 end
redis.call('HDEL', schemas, node)
return redis.call('ZREM', beats, node)
