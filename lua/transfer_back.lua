#!lua flags=allow-oom
-- transfer_back: gives a bucket its units back that have not come, and never will, to where they were sent.
-- KEYS[1] sale
-- KEYS[2] moving
-- ARGV[1] transfer, as it is written down there
-- ARGV[2] units
-- REPLY back: they are available here again
-- REPLY gone: the transfer was finished before
-- INVARIANT available + moving stays the same; the units of one transfer come back at most once.

local sale_key, moving_key, transfer, units = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local is_moving = redis.call('ZSCORE', moving_key, transfer)
if not is_moving then
  return 'gone'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('ZREM', moving_key, transfer)
redis.call('HINCRBY', sale_key, 'available', units)
redis.call('HINCRBY', sale_key, 'transfers', 1)
return 'back'
