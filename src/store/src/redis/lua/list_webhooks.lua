if not seen(KEYS[1]) then return {} end
local fields, webhooks = redis.call('HGETALL', KEYS[1]), {}
for index = 1, #fields, 2 do
  if string.sub(fields[index], 1, 1) == 'w' then
    webhooks[#webhooks + 1] = string.sub(fields[index], 2)
    webhooks[#webhooks + 1] = fields[index + 1]
  end
end
return webhooks
