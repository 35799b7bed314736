-- Records the heartbeat of a node, or that it has left, and returns the heartbeats of all nodes. The
-- time is the server's own.
local beats = KEYS[1]
local node, leaves, keep = unpack(ARGV, 2, 4)
redis.call('ZADD', beats, leaves == '1' and '0' or text(now), node)
redis.call('PEXPIRE', beats, keep)
return redis.call('ZRANGE', beats, 0, -1, 'WITHSCORES')
