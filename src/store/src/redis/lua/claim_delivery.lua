local txn, out, flight = unpack(KEYS)
local position, node, call, id = unpack(ARGV, 2, 5)
local delivery = redis.call('HMGET', txn, 'i', 'k', 'j')
if delivery[1] ~= position then return 0 end
if delivery[2] then return delivery[3] == call and 1 or 0 end
redis.call('HSET', txn, 'k', text(now), 'j', call)
redis.call('HSET', flight, position, node .. id)
redis.call('XACK', out, 'sakshi', position)
redis.call('XDEL', out, position)
return 1
