local mark = KEYS[1]
local found, fresh = unpack(ARGV, 2, 3)
-- If another node was faster, the caller reads it again.
if (redis.call('GET', mark) or '') ~= found then return 0 end
-- An empty text deletes the mark.
if fresh == '' then redis.call('DEL', mark) else redis.call('SET', mark, fresh) end
return 1
