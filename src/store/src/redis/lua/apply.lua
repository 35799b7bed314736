-- Applies batches, each as a whole or not at all. A batch has the fields that its guards compare, by key; its guards {kind, key, …};
-- and its operations {kind, key, …}. Keys are numbers in KEYS, operands texts or {kind, number, …}. Replies the time, and for each batch
-- 0 and the results, or the number of the guard that failed and the record that it saw.
local EXACT = 9007199254740992

local function below(a, b)
  local x, y = tonumber(a), tonumber(b)
  if x ~= y or (x < EXACT and x > -EXACT) then return x < y end
  -- Beyond 2^53 a number of Lua is not exact.
  local negative = string.sub(a, 1, 1) == '-'
  if #a ~= #b then return (#a < #b) ~= negative end
  return a ~= b and (a < b) ~= negative
end

local holds = {
  version = function(seen, g) return seen.version == g[3] end,
  before = function(seen, g) local at = seen[g[3]] return at and now < tonumber(at) end,
  below = function(seen, g) local a, b = seen[g[3]], seen[g[4]] return a and b and below(a, b) end,
  least = function(seen, g) local a = seen[g[3]] return a and not below(a, g[4]) end,
  most = function(seen, g) local a = seen[g[3]] return a and not below(g[4], a) end,
  equal = function(seen, g) return seen[g[3]] == g[4] end,
  unset = function(seen, g) return seen.version and not seen[g[3]] end,
}

local results
local function value(operand)
  if type(operand) ~= 'table' then return operand end
  if operand[1] == 'now' then return text(now + operand[2]) end
  if operand[1] == 'latest' then return text(math.max(now + operand[2], operand[3])) end
  return results[operand[2]]
end

local function fields(command, op, first)
  for i = first, #op do command[#command + 1] = value(op[i]) end
  return unpack(command)
end

local operate = {
  -- A record that a guard found absent.
  new = function(key, op) redis.call(fields({'HSET', key, 'version', '1'}, op, 3)) end,
  put = function(key, op)
    local version = redis.call('HGET', key, 'version') or 0
    redis.call('DEL', key)
    redis.call(fields({'HSET', key, 'version', text(version + 1)}, op, 3))
  end,
  set = function(key, op)
    if redis.call('EXISTS', key) == 0 then return end
    redis.call('HINCRBY', key, 'version', 1)
    redis.call(fields({'HSET', key}, op, 3))
  end,
  add = function(key, op)
    if redis.call('EXISTS', key) == 0 then return end
    local sum = redis.call('HINCRBY', key, op[3], value(op[4]))
    if sum < EXACT and sum > -EXACT then return text(sum) end
    return redis.call('HGET', key, op[3])
  end,
  append = function(key, op) return text(redis.call('RPUSH', key, cmsgpack.pack({fields({}, op, 3)}))) end,
  index = function(key, op) redis.call('ZADD', key, value(op[4]), op[3]) end,
  unindex = function(key, op) return text(redis.call('ZREM', key, op[3]) - 1) end,
  sweep = function(key, op) return text(redis.call('ZREMRANGEBYSCORE', key, '-inf', value(op[3]))) end,
  expire = function(key, op) redis.call('PEXPIREAT', key, value(op[3])) end,
  later = function(key, op) redis.call('PEXPIREAT', key, value(op[3]), 'GT') end,
}

local function apply(reads, guards, ops)
  local seen = {}
  for _, read in ipairs(reads) do
    local values, known = redis.call('HMGET', KEYS[read[1]], unpack(read, 2)), {}
    for i = 2, #read do known[read[i]] = values[i - 1] or nil end
    seen[read[1]] = known
  end
  for number, g in ipairs(guards) do
    local good
    if g[1] == 'absent' then good = redis.call('EXISTS', KEYS[g[2]]) == 0
    elseif g[1] == 'present' then good = redis.call('EXISTS', KEYS[g[2]]) == 1
    else good = holds[g[1]](seen[g[2]], g) end
    if not good then return {number, redis.call('HGETALL', KEYS[g[2]])} end
  end
  results = {}
  for number, op in ipairs(ops) do
    -- A command whose arguments are all known needs nothing else.
    if op[1] == 'call' then
      redis.call(op[3], KEYS[op[2]], unpack(op, 4))
      results[number] = '0'
    else
      results[number] = operate[op[1]](KEYS[op[2]], op) or '0'
    end
  end
  return {0, results}
end

local replies = {text(now)}
for _, batch in ipairs(cmsgpack.unpack(ARGV[2])) do
  -- Redis ends keys by its own clock; for a given time it is checked here, before each batch.
  if given then for _, key in ipairs(KEYS) do alive(key) end end
  replies[#replies + 1] = apply(batch[1], batch[2], batch[3])
end
return replies
