-- A memory is sixteen bytes of transaction, sixteen of the call that made it, and its end.
local id, call, bound, window = unpack(ARGV, 2, 5)
local before = redis.call('GET', KEYS[1])
if before and tonumber(string.sub(before, 33)) <= now then before = false end
if before and string.sub(before, 17, 32) == call then return {'again'} end
if before and bound ~= '1' and string.sub(before, 1, 16) ~= id then return {'taken'} end
local ends = text(now + tonumber(window))
local memory = id .. call .. ends
redis.call('SET', KEYS[1], memory, 'PXAT', ends)
return {'reserved', memory, before}
