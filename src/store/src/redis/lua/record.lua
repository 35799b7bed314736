-- One record, or some of its fields: what is read most has a way of its own.
if ARGV[2] == '' then
  if given and not seen(KEYS[1]) then return {text(now), {}} end
  return {text(now), ARGV[4] and redis.call('HMGET', KEYS[1], unpack(ARGV, 4)) or redis.call('HGETALL', KEYS[1])}
end

