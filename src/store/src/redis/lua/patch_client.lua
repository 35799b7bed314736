-- Writes what operators set for a client, unless that has changed since it was read.
local client = KEYS[1]
local names = {'n', 'z', 'q'}
local before, after = {unpack(ARGV, 2, 4)}, {unpack(ARGV, 5, 7)}
if redis.call('EXISTS', client) == 0 then return 0 end
local as_before, as_after = true, true
for place, kept in ipairs(redis.call('HMGET', client, unpack(names))) do
  as_before = as_before and (kept or '') == before[place]
  as_after = as_after and (kept or '') == after[place]
end
if as_after then return 1 end
if not as_before then return 0 end
for place, name in ipairs(names) do
  if after[place] == '' then redis.call('HDEL', client, name) else redis.call('HSET', client, name, after[place]) end
end
return 1
