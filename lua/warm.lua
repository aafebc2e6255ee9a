#!lua
-- warm: begins to build one bucket of an item from the ledger, where nothing can be bought until it is opened, or tells one that the new layout has no place for it.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3] held
-- KEYS[4] unseen
-- KEYS[5] moving
-- ARGV[1] epoch of this warm-up
-- ARGV[2] buckets of the item
-- ARGV[3] available units
-- ARGV[4] confirmed_units
-- ARGV[5] opens_at_ms
-- ARGV[6] closes_at_ms
-- ARGV[7] limit_per_buyer, empty for none
-- ARGV[8] version of the ledger row that was read
-- ARGV[9] paused: id of the pause, empty for none
-- ARGV[10] fence of the item lock
-- ARGV[11] state: `building`, or `moved` for a bucket of an earlier layout
-- REPLY building: the bucket is empty but for its stock
-- REPLY left: whoever asks for the bucket is told the new layout
-- REPLY live epoch: the bucket sells under this epoch, or a later one, and stays as it is
-- REPLY moved epoch: a later warm-up is at work
-- REPLY stale fence: a later holder of the lock was here
-- INVARIANT a bucket that sells is never overwritten; one that this very holder of the lock has frozen may be.

local sale_key, buyers_key, held_key, unseen_key, moving_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local epoch, buckets, available, confirmed_units = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local opens_at_ms, closes_at_ms, limit_per_buyer, version = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local paused, fence, state = ARGV[9], ARGV[10], ARGV[11]

local server = incarnation()
local sale = redis.call('HMGET', sale_key, 'epoch', 'state', 'incarnation', 'fence', 'frozen_until_ms')
if tonumber(sale[4] or 0) > tonumber(fence) then
  return 'stale ' .. sale[4]
end
local is_frozen = sale[4] == fence and now_ms() < tonumber(sale[5] or 0)
if sale[2] == 'open' and sale[3] == server and not is_frozen then
  return 'live ' .. sale[1]
end
if sale[1] and tonumber(sale[1]) > tonumber(epoch) then
  return 'moved ' .. sale[1]
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('UNLINK', sale_key, buyers_key, held_key, unseen_key, moving_key)
redis.call('HSET', sale_key,
  'epoch', epoch, 'buckets', buckets, 'state', state, 'available', available,
  'confirmed_units', confirmed_units, 'opens_at_ms', opens_at_ms, 'closes_at_ms', closes_at_ms,
  'version', version, 'incarnation', server, 'fence', fence)
if limit_per_buyer ~= '' then
  redis.call('HSET', sale_key, 'limit_per_buyer', limit_per_buyer)
end
if paused ~= '' then
  redis.call('HSET', sale_key, 'paused', paused)
end
return state == 'moved' and 'left' or 'building'
