-- What an idempotency key says about a request that creates `subject`; nothing when it is new.
local function repetition(key, subject, request)
  if request == '' or not alive(key) then return nil end
  local kept = redis.call('HMGET', key, 's', 'q', 'a')
  if kept[1] == subject then return {'same'} end
  if kept[2] == request then return {'replayed', kept[3]} end
  return {'reused'}
end

local function keep(key, subject, request, answer, ends)
  if request == '' then return end
  redis.call('HSET', key, 's', subject, 'q', request, 'a', answer, 'u', ends)
  redis.call('PEXPIREAT', key, ends)
end
