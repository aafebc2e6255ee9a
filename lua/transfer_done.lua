#!lua flags=allow-oom
-- transfer_done: forgets a transfer whose units have come to the bucket that was short.
-- KEYS[1] moving
-- ARGV[1] transfer, as it is written down there
-- REPLY done: it is forgotten
-- REPLY gone: it was forgotten before
-- INVARIANT no stock moves.

local moving_key, transfer = KEYS[1], ARGV[1]

-- Point of no return: everything above only read, everything below only writes.
return redis.call('ZREM', moving_key, transfer) == 1 and 'done' or 'gone'
