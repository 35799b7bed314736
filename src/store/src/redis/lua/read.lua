-- Answers queries {kind, key, …} at one time. Replies the time and the answers.
local ENTRIES = 16

-- Returns the size of the last field of an entry; an integer has 8 bytes.
local function size(packed, is_integer)
  local fields = cmsgpack.unpack(packed)
  return math.max(is_integer and 8 or #fields[#fields], 1)
end

local function entries(key, q)
  local first, limit, room, is_integer = unpack(q, 3)
  local entries = {}
  while #entries < limit do
    local more = math.min(ENTRIES, limit - #entries)
    local found = redis.call('LRANGE', key, text(first + #entries), text(first + #entries + more - 1))
    for _, entry in ipairs(found) do
      entries[#entries + 1] = entry
      if room then room = room - size(entry, is_integer) end
      if room and room <= 0 then return entries end
    end
    if #found < more then break end
  end
  return entries
end

local function answer(kind, key, q)
  if kind == 'record' then return redis.call('HGETALL', key) end
  if kind == 'fields' then return redis.call('HMGET', key, unpack(q, 3)) end
  if kind == 'entries' then return entries(key, q) end
  if kind == 'ending' then return text(math.max(redis.call('PEXPIRETIME', key), 0)) end
  if kind == 'length' then return redis.call('LLEN', key) end
  if kind == 'rank' then return redis.call('ZRANGE', key, q[3], q[4], 'WITHSCORES') end
  if kind == 'members' then
    return redis.call('ZRANGE', key, q[3], value(q[4]), 'BYSCORE', 'LIMIT', q[5], q[6], 'WITHSCORES')
  end
  return redis.call('ZCOUNT', key, '-inf', value(q[3]))
end
local nothing = {ending = '0', length = 0, count = 0}

local replies = {text(now)}
for _, q in ipairs(cmsgpack.unpack(ARGV[2])) do
  local kind, key = q[1], KEYS[q[2]]
  -- Redis expires keys by its own clock; the time of a test is checked here.
  local there = owner_exists(q[2]) and (not given or seen(key))
  replies[#replies + 1] = there and answer(kind, key, q) or nothing[kind] or {}
end
return replies
