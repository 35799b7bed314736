
-- Lets a key end at once or later. The first time of a revocation stands, and the earlier of two expiry times.
local function retire(key, revoked_at, expires_at)
  if revoked_at ~= '' then redis.call('HSETNX', key, 'v', revoked_at) end
  if expires_at ~= '' then
    local before = redis.call('HGET', key, 'x')
    if not before or tonumber(expires_at) < tonumber(before) then redis.call('HSET', key, 'x', expires_at) end
  end
end
