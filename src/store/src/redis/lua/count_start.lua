local before, count = redis.call('GET', KEYS[1]) or '0', ARGV[2]
if tonumber(before) < tonumber(count) then redis.call('SET', KEYS[1], count) end
return 1
