-- Moves waiting deliveries of a dead node to this one, a slice at a time. Returns how many, and whether
-- that was all.
local out = KEYS[1]
local gone, node, slice = unpack(ARGV, 2, 4)
local waiting = redis.pcall('XPENDING', out, 'sakshi', '-', '+', slice, gone)
if waiting.err then
  if string.find(waiting.err, 'NOGROUP', 1, true) then return {0, 1} end
  error(waiting.err)
end
if #waiting == 0 then
  redis.call('XGROUP', 'DELCONSUMER', out, 'sakshi', gone)
  return {0, 1}
end
local claim = {'XCLAIM', out, 'sakshi', node, 0}
for _, entry in ipairs(waiting) do claim[#claim + 1] = entry[1] end
claim[#claim + 1] = 'JUSTID'
redis.call(unpack(claim))
return {#waiting, 0}
