-- One page of an app's events, after those whose time has passed are removed from its list.
local events_of_app, ends_of_app = unpack(KEYS)
if not alive(events_of_app) then return {0, {}} end
while true do
  local gone = redis.call('ZRANGE', ends_of_app, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 1000)
  if #gone == 0 then break end
  redis.call('ZREM', events_of_app, unpack(gone))
  redis.call('ZREM', ends_of_app, unpack(gone))
end
return {redis.call('ZCARD', events_of_app), redis.call('ZRANGE', events_of_app, ARGV[2], ARGV[3])}
