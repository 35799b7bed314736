local txn = KEYS[1]
if not seen(txn) then return false end
local until_at = redis.call('HGET', txn, 'u')
if until_at and now >= tonumber(until_at) then return false end
return redis.call('HMGET', txn, 'c', 'a', 'e', 'o', 'x', 's', 'v', 'p', 'f', 'd', 'r')
