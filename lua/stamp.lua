#!lua flags=allow-oom
-- stamp: writes down that a bucket agrees with the ledger on this very server, so that it sells again.
-- KEYS[1] sale
-- ARGV[1] fence of the item lock
-- ARGV[2] epoch of the bucket that was compared
-- ARGV[3] incarnation on which it was compared
-- REPLY stamped: the bucket sells within its window
-- REPLY absent: the item is not in this Redis
-- REPLY moved epoch: the bucket was built anew
-- REPLY stale fence: a later holder of the lock was here
-- REPLY other: this is another server by now; compare again
-- INVARIANT no stock moves.

local sale_key, fence, epoch, compared_on = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local sale = redis.call('HMGET', sale_key, 'epoch', 'fence')
if not sale[1] then
  return 'absent'
end
if sale[1] ~= epoch then
  return 'moved ' .. sale[1]
end
if tonumber(sale[2] or 0) > tonumber(fence) then
  return 'stale ' .. sale[2]
end
if incarnation() ~= compared_on then
  return 'other'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('HSET', sale_key, 'fence', fence, 'incarnation', compared_on)
return 'stamped'
