-- The values of a key that are not sealed under the key with this id: how many were looked at, each of them with its place and
-- with how many bytes of it are in the clear, and where to go on.
local of_type, sealing, from, most, clear = unpack(ARGV, 2, 6)
from, most, clear = tonumber(from), tonumber(most), tonumber(clear)
local looked_at, found, on = 0, {}, false
local function look(place, value)
  -- The outcome of a registration begins after its time.
  local before = clear or string.find(value, ' ', 17, true) or 0
  if #value <= before then return end
  looked_at = looked_at + 1
  if string.sub(value, before + 1, before + 4) ~= sealing then found[#found + 1] = {place, text(before), value} end
end
if of_type == 'hash' then
  local names = {}
  for index = 7, #ARGV do
    local prefix = string.match(ARGV[index], '^(.-)%*$')
    if prefix then
      for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
        if #name > #prefix and string.sub(name, 1, #prefix) == prefix then names[#names + 1] = name end
      end
    else
      names[#names + 1] = ARGV[index]
    end
  end
  for _, name in ipairs(names) do
    local value = redis.call('HGET', KEYS[1], name)
    if value then look(name, value) end
  end
elseif of_type == 'list' then
  for index, value in ipairs(redis.call('LRANGE', KEYS[1], from, from + most - 1)) do look(text(from + index - 1), value) end
  if redis.call('LLEN', KEYS[1]) > from + most then on = text(from + most) end
elseif of_type == 'zset' then
  for _, value in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do look('', value) end
else
  local value = redis.call('GET', KEYS[1])
  if value then look('', value) end
end
return {looked_at, found, on}
