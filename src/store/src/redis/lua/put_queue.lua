-- Writes the deliveries that wait in a partition, and assigns them to a node that does not exist: whoever starts takes them over.
local out = KEYS[1]
local node = ARGV[2]
redis.call('DEL', out)
for index = 3, #ARGV, 3 do
  redis.call('XADD', out, ARGV[index], 't', ARGV[index + 1], 'o', ARGV[index + 2])
end
redis.call('XGROUP', 'CREATE', out, 'sakshi', '0')
redis.call('XREADGROUP', 'GROUP', 'sakshi', node, 'STREAMS', out, '>')
return 1
