#!lua
-- transfer_out: takes units from a bucket that has more than it needs, for another bucket of the item that is short.
-- KEYS[1] sale
-- KEYS[2] moving
-- ARGV[1] epoch that the caller knows
-- ARGV[2] buckets that the caller knows
-- ARGV[3] id of the transfer, new for each attempt
-- ARGV[4] number of the bucket that is short
-- ARGV[5] units that are wanted
-- REPLY out units started_at_ms: so many left, no more than were available; they are moving until transfer_done or transfer_back
-- REPLY none: nothing is available
-- REPLY moved epoch buckets: the caller's layout is old
-- REPLY absent: the bucket is not in this Redis, or not on sale
-- REPLY not_ready: this server may have forgotten sales, and has not been compared with the ledger since
-- REPLY frozen: a correction is at work
-- INVARIANT available + moving stays the same.

local sale_key, moving_key = KEYS[1], KEYS[2]
local known_epoch, known_buckets, id, home, wanted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])

local sale = redis.call('HMGET', sale_key,
  'epoch', 'buckets', 'state', 'available', 'incarnation', 'frozen_until_ms')
if sale[1] and (sale[1] ~= known_epoch or sale[2] ~= known_buckets) then
  return 'moved ' .. sale[1] .. ' ' .. sale[2]
end
if sale[3] ~= 'open' then
  return 'absent'
end
if sale[5] ~= incarnation() then
  return 'not_ready'
end
local now = now_ms()
if now < tonumber(sale[6] or 0) then
  return 'frozen'
end
local units = math.min(wanted, tonumber(sale[4]))
if units <= 0 then
  return 'none'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('ZADD', moving_key, whole(now), table.concat({ id, home, whole(units) }, '|'))
redis.call('HINCRBY', sale_key, 'available', whole(-units))
return 'out ' .. whole(units) .. ' ' .. whole(now)
