local txn, flight = unpack(KEYS)
local position, outcome, status, duration = unpack(ARGV, 2, 5)
local delivery = redis.call('HMGET', txn, 'i', 'k', 'w', 'u')
if delivery[1] ~= position or not delivery[2] then return 0 end
redis.call('HDEL', flight, position)
if delivery[3] and delivery[3] ~= 'unknown' then return 0 end
redis.call('HSET', txn, 'w', outcome, 'n', status, 'l', duration)
redis.call('HDEL', txn, 'j')
redis.call('PEXPIREAT', txn, delivery[4])
return 1
