-- Applies batches, each as a whole or not at all. A batch has the fields that its guards compare, by key; its guards {kind, key, …}; its
-- operations {kind, key, …}; and the key that stores its call, and the call, if it has one. Keys are numbers in KEYS. Replies the time, and
-- for each batch 0, the results and the time of a known call; or the number of the failed guard and the record that it saw.
local EXACT = 9007199254740992

local function below(a, b)
  local x, y = tonumber(a), tonumber(b)
  if x ~= y or (x < EXACT and x > -EXACT) then return x < y end
  -- Beyond 2^53 a number of Lua is not exact.
  local negative = string.sub(a, 1, 1) == '-'
  if #a ~= #b then return (#a < #b) ~= negative end
  return a ~= b and (a < b) ~= negative
end

-- The fields of the records that guards compare, by key.
local records

-- A script's functions are created for each call, so a chain of comparisons costs less than a table of functions.
local function holds(g)
  local kind, n = g[1], g[2]
  if kind == 'absent' then return redis.call('EXISTS', KEYS[n]) == 0 end
  if kind == 'present' then return redis.call('EXISTS', KEYS[n]) == 1 end
  if kind == 'length' then return (owner_exists(n) and redis.call('LLEN', KEYS[n]) or 0) == g[3] end
  if kind == 'fewer' then return (owner_exists(n) and redis.call('ZCARD', KEYS[n]) or 0) < g[3] end
  if kind == 'free' then return not owner_exists(n) or redis.call('ZCOUNT', KEYS[n], g[3], g[3]) == 0 end
  if kind == 'entry' then
    return g[3] > 0 and owner_exists(n) and redis.call('LINDEX', KEYS[n], text(g[3] - 1)) == cmsgpack.pack({unpack(g, 4)})
  end
  if kind == 'answer' then return (redis.call(g[3], KEYS[n], unpack(g, 5)) or '') == g[4] end
  local record = records[n]
  local field = record[g[3]]
  if kind == 'unset' then return record.version and not field end
  if kind == 'equal' then return field == g[4] end
  if kind == 'version' then return record.version == g[3] end
  if kind == 'before' then return field and now < tonumber(field) end
  if kind == 'least' then return field and not below(field, g[4]) end
  if kind == 'most' then return field and not below(g[4], field) end
  local limit = record[g[4]]
  return field and limit and below(field, limit)
end

-- Returns the answer to a failed guard: its number, and the record that it saw.
local function refusal(number, g)
  local is_of_record = g[1] ~= 'length' and g[1] ~= 'fewer' and g[1] ~= 'free' and g[1] ~= 'entry' and g[1] ~= 'answer'
  return {number, is_of_record and redis.call('HGETALL', KEYS[g[2]]) or {}}
end

-- Returns the commands that set these values of a record, and delete the fields without a value.
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

-- Returns the operands of an operation as values.
local function values(op, first)
  local values = {}
  for i = first, #op do values[#values + 1] = value(op[i]) end
  return values
end

-- Packs the fields of an entry.
local function entry(op, first)
  return cmsgpack.pack(values(op, first))
end

-- Runs a command on a record, and on its lists and indexes.
local function with_children(n, command, ...)
  redis.call(command, KEYS[n], ...)
  for _, child in ipairs(children[n] or {}) do redis.call(command, child, ...) end
end

-- Changes a list or an index. A new one expires with its record.
local function change(n, command, ...)
  local known = not parents[n] or redis.call('EXISTS', KEYS[n]) == 1
  local result = redis.call(command, KEYS[n], ...)
  if not known then
    local ends = redis.call('PEXPIRETIME', parents[n])
    if ends >= 0 then redis.call('PEXPIREAT', KEYS[n], text(ends)) end
  end
  return result
end

-- Returns a number as text; one that Lua cannot represent is read again.
local function exact(number, key, field)
  if number < EXACT and number > -EXACT then return text(number) end
  return redis.call('HGET', key, field)
end

-- Writes a record with these fields alone.
local function put(n, op)
  local key = KEYS[n]
  local before = redis.call('HMGET', key, 'version', '@call')
  local set = assigned({'HSET', key, 'version', text((before[1] or 0) + 1)}, op)
  redis.call('DEL', key)
  redis.call(unpack(set))
  if before[2] then redis.call('HSET', key, '@call', before[2]) end
  for _, child in ipairs(children[n] or {}) do redis.call('PERSIST', child) end
end

-- Sets fields of an existing record.
local function set_fields(n, op)
  local key, known = KEYS[n], op[1] == 'change' and records[n].version
  if not known and redis.call('EXISTS', key) == 0 then return end
  local set, gone = assigned({'HSET', key, 'version', text((known or redis.call('HGET', key, 'version') or 0) + 1)}, op)
  redis.call(unpack(set))
  if #gone > 2 then redis.call(unpack(gone)) end
end

local function raise(key, field, least)
  local last = redis.call('HGET', key, field)
  if not last then redis.call('HSETNX', key, 'version', '1') end
  if below(last or '0', least) then
    redis.call('HSET', key, field, least)
    return least
  end
  return exact(redis.call('HINCRBY', key, field, 1), key, field)
end

-- Publishes a notice to the channel of each node that the field names.
local function tell(n, op)
  local node, publish, channel, message = unpack(op, 4)
  for watcher in string.gmatch(redis.call('HGET', KEYS[n], op[3]) or '', string.rep('%x', 32)) do
    if watcher ~= node then redis.call(publish, channel .. ':' .. watcher, message) end
  end
end

local function operate(n, op)
  local kind, key = op[1], KEYS[n]
  -- A command with known arguments needs nothing else.
  if kind == 'call' then redis.call(op[3], key, unpack(op, 4)) return end
  if kind == 'change' or kind == 'set' then return set_fields(n, op) end
  -- A record that a guard found absent.
  if kind == 'new' then redis.call(unpack((assigned({'HSET', key, 'version', '1'}, op)))) return end
  if kind == 'put' then return put(n, op) end
  if kind == 'add' then
    if redis.call('EXISTS', key) == 0 then return end
    return exact(redis.call('HINCRBY', key, op[3], value(op[4], key) or '0'), key, op[3])
  end
  if kind == 'number' then return raise(key, op[3], text(now * op[4])) end
  if kind == 'expire' then return with_children(n, 'PEXPIREAT', value(op[3], key) or '0') end
  if kind == 'later' then return with_children(n, 'PEXPIREAT', value(op[3], key) or '0', 'GT') end
  if kind == 'keep' then return with_children(n, 'PERSIST') end
  if kind == 'remove' then return with_children(n, 'DEL') end
  if kind == 'tell' then return tell(n, op) end
  -- A command on a key that is not a record.
  if kind == 'ask' then return redis.call(op[3], key, unpack(values(op, 4))) end
  if not owner_exists(n) then return kind == 'unindex' and '-1' end
  if kind == 'append' then return text(change(n, 'RPUSH', entry(op, 3))) end
  if kind == 'index' then change(n, 'ZADD', value(op[4]) or '0', op[3]) return end
  if kind == 'unindex' then return text(redis.call('ZREM', key, op[3]) - 1) end
  if kind == 'sweep' then return text(redis.call('ZREMRANGEBYSCORE', key, op[3], value(op[4]) or '0')) end
  if op[3] > 0 and op[3] <= redis.call('LLEN', key) then redis.call('LSET', key, text(op[3] - 1), entry(op, 4)) end
end

-- Deletes a key that has expired by the time of a test. Redis expires keys only by its own clock.
local function let_end(n)
  if alive(KEYS[n]) then return end
  for _, child in ipairs(children[n] or {}) do redis.call('DEL', child) end
end

local function apply(reads, guards, ops, keeper, call)
  records = {}
  for _, read in ipairs(reads) do
    local values, known = redis.call('HMGET', KEYS[read[1]], unpack(read, 2)), {}
    for i = 2, #read do known[read[i]] = values[i - 1] or nil end
    records[read[1]] = known
  end
  local kept = keeper and records[keeper]['@call']
  kept = kept and cmsgpack.unpack(kept)
  if kept and kept[1] == call then return {0, kept[3], kept[2]} end
  for number, g in ipairs(guards) do
    if not holds(g) then return refusal(number, g) end
  end
  results = {}
  for number, op in ipairs(ops) do
    results[number] = operate(op[2], op) or '0'
    if given then let_end(op[2]) end
  end
  if keeper and redis.call('EXISTS', KEYS[keeper]) == 1 then
    redis.call('HSET', KEYS[keeper], '@call', cmsgpack.pack({call, text(now), results}))
  end
  return {0, results}
end

-- The last key has the schema number, where there is one beside the records: a node at a lower number writes nothing.
if ARGV[4] and tonumber(string.match(redis.call('GET', KEYS[#KEYS]) or '0', '^%d+')) > tonumber(ARGV[4]) then return {} end
if given then for n in ipairs(KEYS) do let_end(n) end end
local replies = {text(now)}
for _, batch in ipairs(cmsgpack.unpack(ARGV[2])) do
  replies[#replies + 1] = apply(unpack(batch))
end
return replies
