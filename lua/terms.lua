#!lua flags=allow-oom
-- terms: tells a bucket the window, the limit and the pause that the ledger has by now.
-- KEYS[1] sale
-- ARGV[1] version of the ledger row that was read
-- ARGV[2] opens_at_ms
-- ARGV[3] closes_at_ms
-- ARGV[4] limit_per_buyer, empty for none
-- ARGV[5] paused: id of the pause, empty for none
-- REPLY told: the bucket sells by these terms
-- REPLY absent: the item is not in this Redis
-- REPLY newer version: it has later ones already
-- INVARIANT no stock moves; later terms are never overwritten by earlier ones.

local sale_key, version, opens_at_ms, closes_at_ms = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local limit_per_buyer, paused = ARGV[4], ARGV[5]

local sale = redis.call('HMGET', sale_key, 'epoch', 'version')
if not sale[1] then
  return 'absent'
end
if tonumber(sale[2]) > tonumber(version) then
  return 'newer ' .. sale[2]
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('HDEL', sale_key, 'limit_per_buyer', 'paused')
redis.call('HSET', sale_key,
  'version', version, 'opens_at_ms', opens_at_ms, 'closes_at_ms', closes_at_ms)
if limit_per_buyer ~= '' then
  redis.call('HSET', sale_key, 'limit_per_buyer', limit_per_buyer)
end
if paused ~= '' then
  redis.call('HSET', sale_key, 'paused', paused)
end
return 'told'
