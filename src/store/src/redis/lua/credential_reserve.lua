-- A memory is sixteen bytes of transaction, sixteen of the call that made it, what was there before,
-- and its end. Before: 0 nothing, 1 a memory of the same transaction, 2 one of another, which gave
-- way to a credential that its holder bound; who has no such binding may not follow it there.
local id, call, bound, window = unpack(ARGV, 2, 5)
local before = redis.call('GET', KEYS[1])
if before and tonumber(string.sub(before, 34)) <= now then before = false end
local place = '0'
if before then
  local of, by, under = string.sub(before, 1, 16), string.sub(before, 17, 32), string.sub(before, 33, 33)
  if by == call then
    -- What was before is not known any more; only whether there was anything.
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
