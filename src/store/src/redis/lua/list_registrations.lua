local event, registrations = unpack(KEYS)
local after, most, room = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not seen(event) then return {0, {}} end
-- A few at a time, because one may hold a photo of megabytes.
local found = {}
while #found < most and (#found == 0 or room > 0) do
  local first = after + #found
  local rows = redis.call('LRANGE', registrations, text(first), text(first + math.min(most - #found, 4) - 1))
  if #rows == 0 then break end
  for _, row in ipairs(rows) do
    if #found > 0 and room <= 0 then break end
    found[#found + 1] = row
    -- Only the outcome counts, which follows sixteen bytes of id, the time and a space.
    room = room - (#row - (string.find(row, ' ', 17, true) or 0))
  end
end
return {redis.call('LLEN', registrations), found}
