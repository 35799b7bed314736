local account = redis.call('HMGET', KEYS[1], 'b', 's')
return {account[1], account[2], redis.call('LLEN', KEYS[2])}
