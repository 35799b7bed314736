-- Why an event takes no guest now, as the number of the refusal: 0 disabled, 1 expired, 2 full.
local function refusal(event)
  local gate = redis.call('HMGET', event, 'y', 'x', 'm', 'r')
  if gate[1] ~= '1' then return '0' end
  if now >= tonumber(gate[2]) then return '1' end
  if tonumber(gate[4]) >= tonumber(gate[3]) then return '2' end
  return nil
end
