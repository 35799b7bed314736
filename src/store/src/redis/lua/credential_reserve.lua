-- A memory is sixteen bytes of transaction id, sixteen bytes of the id of the call that wrote it, one
-- digit for the memory before it, and its end. The digit: 0 none, 1 of the same transaction, 2 of
-- another one, replaced because the holder bound the credential; a credential without such a binding is
-- refused there.
local id, call, bound, window = unpack(ARGV, 2, 5)
local before = redis.call('GET', KEYS[1])
if before and tonumber(string.sub(before, 34)) <= now then before = false end
local place = '0'
if before then
  local of, by, under = string.sub(before, 1, 16), string.sub(before, 17, 32), string.sub(before, 33, 33)
  if by == call then
    -- The memory before is not known any more, only whether there was one.
    if under == '0' then return {'reserved', before, false} end
    return {'again'}
  end
  place = (of ~= id or under == '2') and '2' or '1'
  if place == '2' and bound ~= '1' then return {'taken'} end
end
local ends = text(now + tonumber(window))
local memory = id .. call .. place .. ends
redis.call('SET', KEYS[1], memory, 'PXAT', ends)
return {'reserved', memory, before}
