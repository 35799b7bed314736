-- An entry has its number in 8 bytes, the hash before it and its own in 32 each, then what is sealed.
local number, previous, entry = tonumber(ARGV[2]), ARGV[3], ARGV[4]
local length = redis.call('LLEN', KEYS[1])
if length >= number then return redis.call('LINDEX', KEYS[1], number - 1) == entry and 1 or 0 end
if length < number - 1 then return 0 end
local last = redis.call('LINDEX', KEYS[1], -1)
if last and string.sub(last, 41, 72) ~= previous then return 0 end
redis.call('RPUSH', KEYS[1], entry)
return 1
