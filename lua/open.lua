#!lua
-- open: puts a completely built bucket on sale.
-- KEYS[1] sale
-- ARGV[1] epoch of the warm-up that built it
-- REPLY open: the bucket sells within its window
-- REPLY moved epoch: another warm-up is at work
-- REPLY unfinished: the bucket is not complete
-- REPLY other: it was built on a server that has restarted or lost its place since; build it again
-- INVARIANT only the warm-up that built a bucket opens it; opening twice changes nothing.

local sale_key, epoch = KEYS[1], ARGV[1]

local sale = redis.call('HMGET', sale_key, 'epoch', 'state', 'incarnation')
if sale[1] ~= epoch then
  return 'moved ' .. (sale[1] or '0')
end
if sale[2] == 'building' then
  return 'unfinished'
end
if sale[3] ~= incarnation() then
  return 'other'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('HSET', sale_key, 'state', 'open')
return 'open'
