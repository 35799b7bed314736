-- The deliveries that wait in a partition, if all of them are assigned to this node.
local pending = redis.pcall('XPENDING', KEYS[1], 'sakshi')
if pending.err then return false end
local entries = redis.call('XRANGE', KEYS[1], '-', '+')
local holder = pending[4] and pending[4][1]
if pending[1] ~= #entries or not holder or #pending[4] ~= 1 or holder[1] ~= ARGV[2] then return false end
return entries
