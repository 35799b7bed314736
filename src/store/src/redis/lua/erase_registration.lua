-- Leaves a guest's place with nothing of the person.
local registrations = KEYS[1]
local place, nothing = unpack(ARGV, 2, 3)
local row = redis.call('LINDEX', registrations, place)
if row then redis.call('LSET', registrations, place, string.sub(row, 1, string.find(row, ' ', 17, true)) .. nothing) end
return 1
