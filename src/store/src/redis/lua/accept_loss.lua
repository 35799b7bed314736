local canary, starts, steps, lost, acceptances = unpack(KEYS)
local known, fresh = unpack(ARGV, 2, 3)
if redis.call('EXISTS', canary) == 0 then redis.call('SET', canary, fresh) end
redis.call('DEL', starts, steps, lost)
redis.call('SET', acceptances, text(math.max(tonumber(redis.call('GET', acceptances) or 0), tonumber(known)) + 1))
return 1
