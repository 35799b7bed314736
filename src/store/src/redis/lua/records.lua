-- Shared by the scripts on records. ARGV[2] has batches or queries, and ARGV[3] families, if any: the numbers in KEYS of a record and of its
-- lists and indexes. Both are MessagePack. An operand is a text or {kind, …}. A reading script may have names of fields from ARGV[4] on.

-- One record, or some of its fields: a short path for the most frequent read.
if ARGV[2] == '' then
  if given and not seen(KEYS[1]) then return {text(now), {}} end
  return {text(now), ARGV[4] and redis.call('HMGET', KEYS[1], unpack(ARGV, 4)) or redis.call('HGETALL', KEYS[1])}
end

local children, parents = {}, {}
if ARGV[3] ~= '' then
  for _, family in ipairs(cmsgpack.unpack(ARGV[3])) do
    children[family[1]] = {}
    for i = 2, #family do
      children[family[1]][i - 1], parents[family[i]] = KEYS[family[i]], KEYS[family[1]]
    end
  end
end

-- Returns true if the record that owns the list or index exists, or none owns it.
local function owner_exists(n)
  return not parents[n] or seen(parents[n])
end

local results
local function value(operand, key)
  if type(operand) ~= 'table' then return operand end
  if operand[1] == 'now' then return text(now + operand[2]) end
  if operand[1] == 'latest' then return text(math.max(now + operand[2], operand[3])) end
  if operand[1] == 'result' then return results[operand[2]] end
  if operand[1] == 'field' then return redis.call('HGET', key, operand[2]) or nil end
  return nil
end
