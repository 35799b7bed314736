-- Replaces a value that is still what was read. Times to live stay.
local key, of_type, place, before, after = KEYS[1], unpack(ARGV, 2, 5)
if of_type == 'zset' then
  local score = redis.call('ZSCORE', key, before)
  if not score then return redis.call('ZSCORE', key, after) and 1 or 0 end
  redis.call('ZADD', key, score, after)
  return redis.call('ZREM', key, before)
end
local read, write = {'GET', key}, {'SET', key, after, 'KEEPTTL'}
if of_type == 'hash' then read, write = {'HGET', key, place}, {'HSET', key, place, after} end
if of_type == 'list' then read, write = {'LINDEX', key, place}, {'LSET', key, place, after} end
local kept = redis.call(unpack(read))
if kept == before then redis.call(unpack(write)) end
-- It is the second when the reply of this call was lost.
return (kept == before or kept == after) and 1 or 0
