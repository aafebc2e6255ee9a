#!lua flags=allow-oom
-- transfer_in: gives a bucket the units that another one of the item has let go, once.
-- KEYS[1] sale
-- KEYS[2] transfer
-- ARGV[1] epoch that the caller knows
-- ARGV[2] buckets that the caller knows
-- ARGV[3] units
-- ARGV[4] started_at_ms: when they left
-- ARGV[5] deadline_ms: how long after that they may still come
-- ARGV[6] retention_ms: how long it is remembered that they came
-- REPLY in: they are available here now
-- REPLY already: they came before
-- REPLY void: they came too late, or somebody has given them back
-- REPLY moved epoch buckets: the caller's layout is old
-- REPLY absent: the bucket is not in this Redis, or not on sale
-- REPLY not_ready: this server may have forgotten sales, and has not been compared with the ledger since
-- REPLY frozen: a correction is at work
-- INVARIANT the units of one transfer come at most once, and never after transfer_void.

local sale_key, transfer_key = KEYS[1], KEYS[2]
local known_epoch, known_buckets, units = ARGV[1], ARGV[2], ARGV[3]
local started_at_ms, deadline_ms, retention_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

local fate = redis.call('GET', transfer_key)
if fate then
  return fate == 'in' and 'already' or 'void'
end
local sale = redis.call('HMGET', sale_key, 'epoch', 'buckets', 'state', 'incarnation', 'frozen_until_ms')
if sale[1] and (sale[1] ~= known_epoch or sale[2] ~= known_buckets) then
  return 'moved ' .. sale[1] .. ' ' .. sale[2]
end
if sale[3] ~= 'open' then
  return 'absent'
end
if sale[4] ~= incarnation() then
  return 'not_ready'
end
local now = now_ms()
if now < tonumber(sale[5] or 0) then
  return 'frozen'
end
if now > started_at_ms + deadline_ms then
  return 'void'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('SET', transfer_key, 'in', 'PX', retention_ms)
redis.call('HINCRBY', sale_key, 'available', units)
redis.call('HINCRBY', sale_key, 'transfers', 1)
return 'in'
