-- The deliveries that wait for a node after an entry; none if nothing was ever queued.
local waiting = redis.pcall('XREADGROUP', 'GROUP', 'sakshi', ARGV[2], 'COUNT', ARGV[4], 'STREAMS', KEYS[1], ARGV[3])
if not waiting then return {} end
if waiting.err then
  if string.find(waiting.err, 'NOGROUP', 1, true) then return {} end
  error(waiting.err)
end
return waiting[1][2]
