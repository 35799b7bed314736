if not alive(KEYS[1]) then return 0 end
local idle_until, ends_at = unpack(redis.call('HMGET', KEYS[1], 'u', 'x'))
local till = math.min(tonumber(ARGV[2]), tonumber(ends_at))
if till > tonumber(idle_until) then
  redis.call('HSET', KEYS[1], 'u', text(till))
  redis.call('PEXPIREAT', KEYS[1], text(till))
end
return 1
