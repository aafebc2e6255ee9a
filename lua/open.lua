#!lua
-- open: puts a completely built bucket on sale.
-- KEYS[1] sale
-- ARGV[1] epoch of the warm-up that built it
-- REPLY open: the bucket sells within its window
-- REPLY moved epoch: another warm-up is at work
-- INVARIANT only the warm-up that built a bucket opens it; opening twice changes nothing.

local sale_key, epoch = KEYS[1], ARGV[1]

local current = redis.call('HGET', sale_key, 'epoch')
if current ~= epoch then
  return 'moved ' .. (current or '0')
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('HSET', sale_key, 'state', 'open')
return 'open'
