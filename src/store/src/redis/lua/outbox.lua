-- Queues an entry under the current time and assigns it to the node at once. Entry ids of one stream
-- only rise, whatever the clock does, and their second number stays below 2^14.
local function queue(out, node, id, origin)
  local function add(position)
    return redis.pcall('XADD', out, position, 't', id, 'o', origin)
  end
  local position = add(text(now) .. '-*')
  local milli, number
  if type(position) == 'table' then
    local info = redis.call('XINFO', 'STREAM', out)
    for index = 1, #info, 2 do
      if info[index] == 'last-generated-id' then milli, number = string.match(info[index + 1], '^(%d+)-(%d+)$') end
    end
    if not milli then error(position.err) end
    number = tonumber(number) + 1
  else
    milli, number = string.match(position, '^(%d+)-(%d+)$')
    number = tonumber(number)
    if number > 16383 then redis.call('XDEL', out, position) end
  end
  if number > 16383 then
    position = add(text(tonumber(milli) + 1) .. '-0')
  elseif type(position) == 'table' then
    position = add(milli .. '-' .. text(number))
  end
  if type(position) == 'table' then error(position.err) end
  local function take()
    return redis.pcall('XREADGROUP', 'GROUP', 'sakshi', node, 'COUNT', 100, 'STREAMS', out, '>')
  end
  local taken = take()
  if taken and taken.err then
    redis.call('XGROUP', 'CREATE', out, 'sakshi', '0')
    taken = take()
    if taken and taken.err then error(taken.err) end
  end
  return position
end
