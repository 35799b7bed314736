-- KEYS are the unfinished attempts and then a transaction or report for each entry in ARGV. Those that this call
-- marked before its reply was lost are counted again.
local marked = 0
for index = 2, #KEYS do
  local txn, position = KEYS[index], ARGV[index]
  local delivery = redis.call('HMGET', txn, 'i', 'k', 'w', 'u')
  local ours = delivery[1] == position and delivery[2]
  if ours and not delivery[3] then
    redis.call('HSET', txn, 'w', 'unknown', 'n', '', 'l', '0')
    redis.call('HDEL', txn, 'j')
    redis.call('PEXPIREAT', txn, delivery[4])
    delivery[3] = 'unknown'
  end
  if ours and delivery[3] == 'unknown' then marked = marked + 1 end
  redis.call('HDEL', KEYS[1], position)
end
return marked
