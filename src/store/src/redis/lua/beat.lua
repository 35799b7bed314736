-- Records the heartbeat of a node, or that it has left, and returns the heartbeats of all nodes. The
-- time is the server's own. Also records the schema numbers that the node knows and works at.
local beats, schemas = unpack(KEYS)
local node, leaves, keep, numbers = unpack(ARGV, 2, 5)
redis.call('ZADD', beats, leaves == '1' and '0' or text(now), node)
redis.call('PEXPIRE', beats, keep)
redis.call('HSET', schemas, node, numbers)
redis.call('PEXPIRE', schemas, keep)
return redis.call('ZRANGE', beats, 0, -1, 'WITHSCORES')
