local found = {}
for index, key in ipairs(KEYS) do
  found[index] = seen(key) and redis.call('HMGET', key, 'i', 'g', 'v', 'k', 'w', 'n', 'l')
end
return found
