local client, ledger, references = unpack(KEYS)
local kind, amount, reference, sensible = unpack(ARGV, 2, 5)
if redis.call('EXISTS', client) == 0 then return {'unknown'} end
if sensible ~= '1' then return {'range'} end
local known = redis.call('HGET', references, kind .. reference)
if known then
  local entry = redis.call('LINDEX', ledger, known - 1)
  local was = string.match(entry, '^%S+ (%S+) ')
  if was ~= amount then return {'reused'} end
  return {'moved', known, entry}
end
local after, seq = move(client, ledger, kind, amount, amount, reference)
if not after then return {'range'} end
redis.call('HSET', references, kind .. reference, seq)
return {'moved', seq, redis.call('LINDEX', ledger, -1)}
