-- The fields of a transaction that exists, and the nodes that have a copy of it.
local function fields_of(txn)
  if given and not seen(txn) then return nil end
  local fields = redis.call('HMGET', txn, 'c', 'a', 'e', 'o', 'x', 's', 'v', 'p', 'f', 'd', 'r', 'u', 'm')
  local copies = table.remove(fields)
  local until_at = table.remove(fields)
  if not fields[1] or (until_at and now >= tonumber(until_at)) then return nil end
  -- Of one that has not ended: whether its window has passed.
  if not fields[7] then fields[8] = now >= tonumber(fields[5]) and '1' or '0' end
  return fields, copies or ''
end
