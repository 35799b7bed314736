-- What an idempotency key says about a request; nothing when it is new. Whoever asks the same thing again because its reply was lost is
-- known by what it has created.
local function repetition(key, request)
  if request == '' or not alive(key) then return nil end
  local kept = redis.call('HMGET', key, 'q', 'a')
  if kept[1] == request then return {'replayed', kept[2]} end
  return {'reused'}
end

local function keep(key, subject, request, answer, ends)
  if request == '' then return end
  redis.call('HSET', key, 's', subject, 'q', request, 'a', answer, 'u', ends)
  redis.call('PEXPIREAT', key, ends)
end
