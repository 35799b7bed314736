-- Moves the balance and appends the entry. Returns the balance after it and its number, or nothing if
-- there is no such client or the balance would leave its range. Redis computes with 64 bits; Lua has 53.
local function move(client, ledger, kind, amount, effect, reference)
  local before = redis.call('HGET', client, 'b')
  if not before then return nil end
  local moved = redis.pcall('HINCRBY', client, 'b', effect)
  if type(moved) == 'table' and moved.err then
    if not string.find(moved.err, 'overflow', 1, true) then error(moved.err) end
    return nil
  end
  local after = redis.call('HGET', client, 'b')
  if string.sub(after, 1, 1) == '-' then
    redis.call('HSET', client, 'b', before)
    return nil
  end
  local seq = redis.call('HINCRBY', client, 's', 1)
  redis.call('RPUSH', ledger, table.concat({kind, amount, after, text(now), reference}, ' '))
  return after, seq
end
