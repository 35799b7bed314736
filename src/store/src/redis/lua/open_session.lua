local idle_until, ends_at, grant = unpack(ARGV, 2, 4)
if alive(KEYS[1]) then return 1 end
redis.call('HSET', KEYS[1], 'u', idle_until, 'x', ends_at, 's', grant)
redis.call('PEXPIREAT', KEYS[1], idle_until)
return 1
