-- Removes an event with its guests.
local event, registrations, waiting, events_of_app, ends_of_app = unpack(KEYS)
local place = redis.call('HGET', event, 'i')
if not place then return 0 end
redis.call('UNLINK', event, registrations, waiting)
redis.call('ZREM', events_of_app, place .. ARGV[2])
redis.call('ZREM', ends_of_app, place .. ARGV[2])
return 1
