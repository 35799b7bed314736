-- Looks for a guest among some registrations. Returns how many were looked at: none at the end of the list; the guest's place,
-- or -1; and whether there is something of the person.
local registrations = KEYS[1]
local id, from, most, of_nobody = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local rows = redis.call('LRANGE', registrations, text(from), text(from + most - 1))
for place, row in ipairs(rows) do
  if string.sub(row, 1, 16) == id then
    -- What is there of a guest who was erased is always as long, and nothing else is so short.
    local length = #row - string.find(row, ' ', 17, true)
    return {#rows, from + place - 1, length == of_nobody and 0 or 1}
  end
end
return {#rows, -1, 0}
