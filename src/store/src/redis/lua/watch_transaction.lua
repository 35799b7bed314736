-- Loads a transaction for a node that keeps a copy while it waits: the node is told when it has ended.
local txn, node = KEYS[1], ARGV[2]
local fields, copies = fields_of(txn)
if not fields then return false end
if not fields[7] and not string.find(copies, node, 1, true) then redis.call('HSET', txn, 'm', copies .. node) end
return fields
