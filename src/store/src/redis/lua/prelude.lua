-- The time and the expiry of keys, for every script. ARGV[1] is a test's time, or empty for the server's own.
local given = tonumber(ARGV[1])
local now = given
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Formats a whole number for Redis; Lua's own form has exponents.
local function text(number)
  return string.format('%.0f', number)
end

-- Returns true if a key exists, and has not expired by the time of a test. The server expires keys only by its own clock.
local function seen(key)
  local ends = redis.call('PEXPIRETIME', key)
  return ends ~= -2 and (not given or ends == -1 or ends > now)
end

-- Returns true if a key exists, and deletes it if it has expired by the time of a test. For scripts that write.
local function alive(key)
  if seen(key) then return true end
  if given then redis.call('DEL', key) end
  return false
end
