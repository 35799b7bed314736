-- Ends the window of a pending transaction before its time.
local txn, waiting = unpack(KEYS)
local id, node, channel, publish, txn_text = unpack(ARGV, 2, 6)
local fields, copies = fields_of(txn)
if not fields then return {'unknown'} end
if fields[7] then return {'before', fields} end
if now < tonumber(fields[5]) then
  fields[5], fields[8] = text(now), '1'
  redis.call('HSET', txn, 'x', fields[5])
  -- It counts as abandoned from now on.
  redis.call('ZADD', waiting, 'XX', fields[5], id)
  tell_others(copies, node, publish, channel, txn_text)
end
return {'expired', fields}
