#!lua flags=allow-oom
-- thaw: ends a freeze.
-- KEYS[1] sale
-- ARGV[1] fence of the item lock
-- ARGV[2] token of the freeze
-- REPLY thawed: the bucket sells again
-- REPLY absent: the item is not in this Redis
-- REPLY stale fence: a later holder of the lock was here
-- REPLY lapsed: this freeze was over already
-- INVARIANT nobody ends somebody else's freeze.

local sale_key, fence, token = KEYS[1], ARGV[1], ARGV[2]

local sale = redis.call('HMGET', sale_key, 'epoch', 'fence', 'freeze_token', 'frozen_until_ms')
if not sale[1] then
  return 'absent'
end
if tonumber(sale[2] or 0) > tonumber(fence) then
  return 'stale ' .. sale[2]
end
if sale[3] ~= token or not sale[4] then
  return 'lapsed'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('HDEL', sale_key, 'frozen_until_ms')
return 'thawed'
