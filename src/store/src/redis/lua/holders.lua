-- The nodes that have waiting deliveries or unfinished attempts in a partition.
local out, flight = unpack(KEYS)
local holders = {}
local consumers = redis.pcall('XINFO', 'CONSUMERS', out, 'sakshi')
if not consumers.err then
  for _, consumer in ipairs(consumers) do
    -- Each consumer is a list: "name", its value, "pending", its value.
    if consumer[4] > 0 then holders[#holders + 1] = consumer[2] end
  end
end
for _, holder in ipairs(redis.call('HVALS', flight)) do holders[#holders + 1] = string.sub(holder, 1, 32) end
return holders
