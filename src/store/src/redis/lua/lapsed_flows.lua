-- Flows whose invitation has ended, with the time of its end.
local lapsing = KEYS[1]
if not seen(lapsing) then return {} end
return redis.call('ZRANGE', lapsing, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
