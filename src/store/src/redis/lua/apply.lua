-- Applies batches, each as a whole or not at all. A batch has the fields that its guards compare, by key; its guards {kind, key, …}; its
-- operations {kind, key, …}; and the key that keeps its call, and the call, if it has one. Keys are numbers in KEYS. Replies the time, and
-- for each batch 0, the results and the time of a call that was known; or the number of the guard that failed and the record that it saw.
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
  version = function(record, g) return record.version == g[3] end,
  before = function(record, g) local at = record[g[3]] return at and now < tonumber(at) end,
  below = function(record, g) local a, b = record[g[3]], record[g[4]] return a and b and below(a, b) end,
  least = function(record, g) local a = record[g[3]] return a and not below(a, g[4]) end,
  most = function(record, g) local a = record[g[3]] return a and not below(g[4], a) end,
  equal = function(record, g) return record[g[3]] == g[4] end,
  unset = function(record, g) return record.version and not record[g[3]] end,
  absent = function(_, g) return redis.call('EXISTS', KEYS[g[2]]) == 0 end,
  present = function(_, g) return redis.call('EXISTS', KEYS[g[2]]) == 1 end,
}

-- Guards about a list or an index.
local contains = {
  length = function(g) return (owner_exists(g[2]) and redis.call('LLEN', KEYS[g[2]]) or 0) == g[3] end,
  fewer = function(g) return (owner_exists(g[2]) and redis.call('ZCARD', KEYS[g[2]]) or 0) < g[3] end,
  entry = function(g)
    return g[3] > 0 and owner_exists(g[2]) and redis.call('LINDEX', KEYS[g[2]], text(g[3] - 1)) == cmsgpack.pack({unpack(g, 4)})
  end,
}

-- The commands that give a record these values, and take its others away.
local function assigned(set, op)
  local gone = {'HDEL', set[2]}
  for i = 3, #op, 2 do
    local new = value(op[i + 1], set[2])
    if new then
      set[#set + 1], set[#set + 2] = op[i], new
    else
      gone[#gone + 1] = op[i]
    end
  end
  return set, gone
end

-- The fields of an entry.
local function entry(op, first)
  local values = {}
  for i = first, #op do values[#values + 1] = value(op[i]) end
  return cmsgpack.pack(values)
end

-- The same command for a record and for what goes with it.
local function with_children(n, command, ...)
  redis.call(command, KEYS[n], ...)
  for _, child in ipairs(children[n] or {}) do redis.call(command, child, ...) end
end

-- Changes a list or an index. A new one ends with its record.
local function change(n, command, ...)
  local known = not parents[n] or redis.call('EXISTS', KEYS[n]) == 1
  local result = redis.call(command, KEYS[n], ...)
  if not known then
    local ends = redis.call('PEXPIRETIME', parents[n])
    if ends >= 0 then redis.call('PEXPIREAT', KEYS[n], text(ends)) end
  end
  return result
end

-- A number as a text; one that Lua cannot hold is read again.
local function exact(number, key, field)
  if number < EXACT and number > -EXACT then return text(number) end
  return redis.call('HGET', key, field)
end

local operate = {
  -- A record that a guard found absent.
  new = function(n, op) redis.call(unpack((assigned({'HSET', KEYS[n], 'version', '1'}, op)))) end,
  put = function(n, op)
    local key = KEYS[n]
    local before = redis.call('HMGET', key, 'version', '@call')
    local set = assigned({'HSET', key, 'version', text((before[1] or 0) + 1)}, op)
    redis.call('DEL', key)
    redis.call(unpack(set))
    if before[2] then redis.call('HSET', key, '@call', before[2]) end
    for _, child in ipairs(children[n] or {}) do redis.call('PERSIST', child) end
  end,
  set = function(n, op)
    local key = KEYS[n]
    if redis.call('EXISTS', key) == 0 then return end
    local set, gone = assigned({'HSET', key}, op)
    redis.call('HINCRBY', key, 'version', 1)
    if #set > 2 then redis.call(unpack(set)) end
    if #gone > 2 then redis.call(unpack(gone)) end
  end,
  add = function(n, op)
    local key = KEYS[n]
    if redis.call('EXISTS', key) == 0 then return end
    return exact(redis.call('HINCRBY', key, op[3], value(op[4], key) or '0'), key, op[3])
  end,
  number = function(n, op)
    local key, field, least = KEYS[n], op[3], text(now * op[4])
    redis.call('HSETNX', key, 'version', '1')
    if below(redis.call('HGET', key, field) or '0', least) then
      redis.call('HSET', key, field, least)
      return least
    end
    return exact(redis.call('HINCRBY', key, field, 1), key, field)
  end,
  append = function(n, op)
    if owner_exists(n) then return text(change(n, 'RPUSH', entry(op, 3))) end
  end,
  rewrite = function(n, op)
    if owner_exists(n) and op[3] > 0 and op[3] <= redis.call('LLEN', KEYS[n]) then
      redis.call('LSET', KEYS[n], text(op[3] - 1), entry(op, 4))
    end
  end,
  index = function(n, op)
    if owner_exists(n) then change(n, 'ZADD', value(op[4]) or '0', op[3]) end
  end,
  unindex = function(n, op)
    return owner_exists(n) and text(redis.call('ZREM', KEYS[n], op[3]) - 1) or '-1'
  end,
  sweep = function(n, op)
    if owner_exists(n) then return text(redis.call('ZREMRANGEBYSCORE', KEYS[n], op[3], value(op[4]) or '0')) end
  end,
  expire = function(n, op) with_children(n, 'PEXPIREAT', value(op[3], KEYS[n]) or '0') end,
  later = function(n, op) with_children(n, 'PEXPIREAT', value(op[3], KEYS[n]) or '0', 'GT') end,
  keep = function(n) with_children(n, 'PERSIST') end,
  remove = function(n) with_children(n, 'DEL') end,
  -- Each node that is named has a channel of its own.
  tell = function(n, op)
    local node, publish, channel, message = unpack(op, 4)
    for watcher in string.gmatch(redis.call('HGET', KEYS[n], op[3]) or '', string.rep('%x', 32)) do
      if watcher ~= node then redis.call(publish, channel .. ':' .. watcher, message) end
    end
  end,
}

-- Redis ends keys by its own clock; a given time is looked at here.
local function let_end(n)
  if alive(KEYS[n]) then return end
  for _, child in ipairs(children[n] or {}) do redis.call('DEL', child) end
end

local function apply(reads, guards, ops, keeper, call)
  local kept = keeper and redis.call('HGET', KEYS[keeper], '@call')
  kept = kept and cmsgpack.unpack(kept)
  if kept and kept[1] == call then return {0, kept[3], kept[2]} end
  local records = {}
  for _, read in ipairs(reads) do
    local values, known = redis.call('HMGET', KEYS[read[1]], unpack(read, 2)), {}
    for i = 2, #read do known[read[i]] = values[i - 1] or nil end
    records[read[1]] = known
  end
  for number, g in ipairs(guards) do
    if contains[g[1]] then
      if not contains[g[1]](g) then return {number, {}} end
    elseif not holds[g[1]](records[g[2]], g) then
      return {number, redis.call('HGETALL', KEYS[g[2]])}
    end
  end
  results = {}
  for number, op in ipairs(ops) do
    -- A command whose arguments are all known needs nothing else.
    if op[1] == 'call' then
      redis.call(op[3], KEYS[op[2]], unpack(op, 4))
      results[number] = '0'
    else
      results[number] = operate[op[1]](op[2], op) or '0'
    end
    if given then let_end(op[2]) end
  end
  if keeper and redis.call('EXISTS', KEYS[keeper]) == 1 then
    redis.call('HSET', KEYS[keeper], '@call', cmsgpack.pack({call, text(now), results}))
  end
  return {0, results}
end

if given then for n in ipairs(KEYS) do let_end(n) end end
local replies = {text(now)}
for _, batch in ipairs(cmsgpack.unpack(ARGV[2])) do
  replies[#replies + 1] = apply(unpack(batch))
end
return replies
