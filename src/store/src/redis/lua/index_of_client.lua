-- Lists an app or a key with its client, in the order of arrival; 0 when there is no such client.
local client, index = unpack(KEYS)
if redis.call('EXISTS', client) == 0 then return 0 end
redis.call('HSETNX', index, ARGV[2], ARGV[3] .. ' ' .. text(redis.call('HLEN', index)))
return 1
