local canary, starts, steps, lost, acceptances, schema = unpack(KEYS)
local known, fresh, number = unpack(ARGV, 2, 4)
if redis.call('EXISTS', canary) == 0 then redis.call('SET', canary, fresh) end
if redis.call('EXISTS', schema) == 0 then redis.call('SET', schema, number) end
redis.call('DEL', starts, steps, lost)
redis.call('SET', acceptances, text(math.max(tonumber(redis.call('GET', acceptances) or 0), tonumber(known)) + 1))
return 1
