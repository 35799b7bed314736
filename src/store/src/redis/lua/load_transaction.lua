local txn = KEYS[1]
if given and not seen(txn) then return false end
local fields = redis.call('HMGET', txn, 'c', 'a', 'e', 'o', 'x', 's', 'v', 'p', 'f', 'd', 'r', 'u')
local until_at = table.remove(fields)
if not fields[1] or (until_at and now >= tonumber(until_at)) then return false end
return fields
