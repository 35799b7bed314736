local lost, acceptances = unpack(KEYS)
local seen, since = unpack(ARGV, 2, 3)
if tonumber(redis.call('GET', acceptances) or 0) == tonumber(seen) then redis.call('SET', lost, since, 'NX') end
return 1
