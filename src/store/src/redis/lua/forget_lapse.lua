-- Takes a flow that is gone off the list.
local flow, lapsing = unpack(KEYS)
if alive(flow) then return 0 end
return redis.call('ZREM', lapsing, ARGV[2])
