local key = KEYS[1]
local revoked_at, expires_at = ARGV[2], ARGV[3]
if redis.call('EXISTS', key) == 0 then return false end
if revoked_at ~= '' then redis.call('HSETNX', key, 'v', revoked_at) end
if expires_at ~= '' then
  local before = redis.call('HGET', key, 'x')
  if not before or tonumber(expires_at) < tonumber(before) then redis.call('HSET', key, 'x', expires_at) end
end
return redis.call('HMGET', key, 'i', 'c', 'l', 'e', 't', 'x', 'v')
