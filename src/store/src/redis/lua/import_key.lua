-- A key as an import has it; 0 when the digest belongs to another key.
local key = KEYS[1]
local id, client, label, environments, created_at, revoked_at, expires_at = unpack(ARGV, 2, 8)
redis.call('HSETNX', key, 'i', id)
if redis.call('HGET', key, 'i') ~= id then return 0 end
redis.call('HSETNX', key, 'c', client)
redis.call('HSETNX', key, 't', created_at)
redis.call('HSET', key, 'l', label, 'e', environments)
retire(key, revoked_at, expires_at)
return 1
