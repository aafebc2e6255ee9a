#!lua flags=allow-oom
-- correct: adds what a frozen bucket differs from the ledger by; it never sets a number.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3] unseen
-- ARGV[1] fence of the item lock
-- ARGV[2] token of the freeze under which the difference was found; it names this correction
-- ARGV[3] epoch of the snapshot
-- ARGV[4] units to add to what is available; may be negative
-- ARGV[5] compared_until_ms: orders that were unseen until then are part of the difference
-- ARGV[6] confirmed_units to add to what was counted; negative once an operator has vouched for a ledger that lacks them
-- ARGV[7..] for each buyer: buyer, units to add to the total
-- REPLY corrected units: so many were added; available never falls below 0, the rest is left over
-- REPLY already units: this correction was made before, and added so many
-- REPLY absent: the item is not in this Redis
-- REPLY moved epoch: the bucket was built anew
-- REPLY stale fence: a later holder of the lock was here
-- REPLY lapsed: the freeze is over, so that units may have been sold since
-- INVARIANT one freeze corrects at most once, and only while it lasts.

local sale_key, buyers_key, unseen_key = KEYS[1], KEYS[2], KEYS[3]
local fence, token, epoch, units, compared_until_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local confirmed_units = tonumber(ARGV[6])
local FIRST_BUYER, BUYER_WIDTH = 7, 2

local sale = redis.call('HMGET', sale_key,
  'epoch', 'fence', 'freeze_token', 'frozen_until_ms', 'corrected_by', 'available', 'corrected_units')
if not sale[1] then
  return 'absent'
end
if sale[1] ~= epoch then
  return 'moved ' .. sale[1]
end
if tonumber(sale[2] or 0) > tonumber(fence) then
  return 'stale ' .. sale[2]
end
if sale[5] == token then
  return 'already ' .. sale[7]
end
if sale[3] ~= token or now_ms() >= tonumber(sale[4] or 0) then
  return 'lapsed'
end
local added = math.max(units, -tonumber(sale[6]))
local names, corrections = {}, {}
for at = FIRST_BUYER, #ARGV, BUYER_WIDTH do
  names[#names + 1] = ARGV[at]
  corrections[#corrections + 1] = tonumber(ARGV[at + 1])
end
local totals = #names > 0 and redis.call('HMGET', buyers_key, unpack(names)) or {}

-- Point of no return: everything above only read, everything below only writes.
redis.call('HSET', sale_key,
  'fence', fence, 'corrected_by', token, 'corrected_units', whole(added))
if added ~= 0 then
  redis.call('HINCRBY', sale_key, 'available', whole(added))
end
if confirmed_units ~= 0 then
  redis.call('HINCRBY', sale_key, 'confirmed_units', whole(confirmed_units))
end
for i, buyer in ipairs(names) do
  local total = tonumber(totals[i] or 0) + corrections[i]
  if total > 0 then
    redis.call('HSET', buyers_key, buyer, whole(total))
  else
    redis.call('HDEL', buyers_key, buyer)
  end
end
redis.call('ZREMRANGEBYSCORE', unseen_key, '-inf', compared_until_ms)
return 'corrected ' .. whole(added)
