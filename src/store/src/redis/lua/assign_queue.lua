-- Assigns the deliveries that wait in a partition to a node that does not exist: whoever starts takes them over.
local out, node = KEYS[1], ARGV[2]
redis.pcall('XGROUP', 'CREATE', out, 'sakshi', '0')
while redis.call('XREADGROUP', 'GROUP', 'sakshi', node, 'COUNT', 1000, 'STREAMS', out, '>') do end
return 1
