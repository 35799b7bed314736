redis.call('HSETNX', KEYS[1], 'p', ARGV[2])
if ARGV[3] ~= '' then redis.call('HSETNX', KEYS[1], 'r', ARGV[3]) end
return 1
