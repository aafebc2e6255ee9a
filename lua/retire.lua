#!lua flags=allow-oom
-- retire: removes a bucket whose sale has been over for the retention and that holds nothing any more.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3] held
-- KEYS[4] unseen
-- KEYS[5] moving
-- ARGV[1] retention_ms: how long a bucket outlives its sale
-- REPLY retired: it is gone; settled records go by themselves
-- REPLY absent: it was not there
-- REPLY early: its sale is not over for long enough
-- REPLY holding held: so many holds are not settled
-- INVARIANT nothing that is held is forgotten.

local sale_key, buyers_key, held_key, unseen_key, moving_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local retention_ms = ARGV[1]

local closes_at_ms = redis.call('HGET', sale_key, 'closes_at_ms')
if not closes_at_ms then
  return 'absent'
end
if now_ms() < tonumber(closes_at_ms) + tonumber(retention_ms) then
  return 'early'
end
local held = redis.call('ZCARD', held_key)
if held > 0 then
  return 'holding ' .. held
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('UNLINK', sale_key, buyers_key, held_key, unseen_key, moving_key)
return 'retired'
