-- Writes deliveries that wait in a partition, after those that earlier calls wrote.
local out = KEYS[1]
for index = 2, #ARGV, 3 do
  -- A repeated call finds what it wrote.
  local added = redis.pcall('XADD', out, ARGV[index], 't', ARGV[index + 1], 'o', ARGV[index + 2])
  if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller', 1, true) then error(added.err) end
end
return 1
