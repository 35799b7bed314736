-- Removes a transaction, a report or a flow, with its place in the outbox or in the list of invitations; or what has neither.
local record, out, flight, lapsing = unpack(KEYS)
local position = out and redis.call('HGET', record, 'i')
if position then
  redis.pcall('XACK', out, 'sakshi', position)
  redis.call('XDEL', out, position)
  redis.call('HDEL', flight, position)
end
if lapsing then redis.call('ZREM', lapsing, ARGV[2]) end
return redis.call('DEL', record)
