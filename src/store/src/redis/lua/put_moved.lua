-- Writes a key as another store had it. A list is cut before the entries that are written.
local key = KEYS[1]
local of_type, ends, from = ARGV[2], ARGV[3], tonumber(ARGV[4])
if of_type == 'list' and from > 0 then
  redis.call('LTRIM', key, 0, from - 1)
else
  redis.call('DEL', key)
end
local commands = {string = 'SET', hash = 'HSET', zset = 'ZADD', list = 'RPUSH'}
local first = 5
while first <= #ARGV do
  local last = math.min(first + 999, #ARGV)
  redis.call(commands[of_type], key, unpack(ARGV, first, last))
  first = last + 1
end
if ends ~= '' then redis.call('PEXPIREAT', key, ends) else redis.call('PERSIST', key) end
return 1
