-- Removes a flow that no longer exists from the list.
local flow, lapsing = unpack(KEYS)
if alive(flow) then return 0 end
return redis.call('ZREM', lapsing, ARGV[2])
