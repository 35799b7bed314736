-- Tells the other nodes that have a copy of a transaction that it has ended, each on a channel of its own.
local function tell_others(copies, node, publish, channel, txn_text)
  for copy in string.gmatch(copies or '', string.rep('%x', 32)) do
    if copy ~= node then redis.call(publish, channel .. ':' .. copy, 't' .. txn_text) end
  end
end
