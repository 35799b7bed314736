-- A client as an import has it, and when the first import was.
local client = KEYS[1]
local name, created_at, at = unpack(ARGV, 2, 4)
if redis.call('EXISTS', client) == 0 then redis.call('HSET', client, 't', created_at, 'b', '0', 's', '0') end
redis.call('HSET', client, 'n', name)
redis.call('HSETNX', client, 'm', at)
return 1
