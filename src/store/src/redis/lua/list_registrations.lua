local event, registrations = unpack(KEYS)
if not seen(event) then return {0, {}} end
return {redis.call('LLEN', registrations), redis.call('LRANGE', registrations, ARGV[2], ARGV[3])}
