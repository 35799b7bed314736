-- Lists a flow by when its open invitation ends, or takes it off the list.
local function line_up(lapsing, id, lapses_at, until_at)
  if lapses_at == '' then
    redis.call('ZREM', lapsing, id)
    return
  end
  redis.call('ZADD', lapsing, lapses_at, id)
  redis.call('PEXPIREAT', lapsing, until_at, 'NX')
  redis.call('PEXPIREAT', lapsing, until_at, 'GT')
end
