#!lua flags=allow-oom
-- freeze: stops new reservations of one bucket for a moment, so that it can be compared and corrected.
-- KEYS[1] sale
-- ARGV[1] fence of the item lock
-- ARGV[2] token of this freeze; the same token again renews it
-- ARGV[3] lease_ms: how long it lasts unless it is renewed
-- REPLY frozen: nothing is reserved until the lease has passed, or until thaw
-- REPLY absent: the item is not in this Redis
-- REPLY stale fence: a later holder of the lock was here
-- REPLY lapsed: this freeze is over, so that units may have been sold since; only a new one, with a new snapshot, helps
-- INVARIANT no stock moves; a freeze that has lapsed is never renewed.

local sale_key, fence, token, lease_ms = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])

local sale = redis.call('HMGET', sale_key, 'epoch', 'fence', 'freeze_token', 'frozen_until_ms')
if not sale[1] then
  return 'absent'
end
if tonumber(sale[2] or 0) > tonumber(fence) then
  return 'stale ' .. sale[2]
end
local now = now_ms()
if sale[3] == token and now >= tonumber(sale[4] or 0) then
  return 'lapsed'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('HSET', sale_key,
  'fence', fence, 'freeze_token', token, 'frozen_until_ms', whole(now + lease_ms))
return 'frozen'
