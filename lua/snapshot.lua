#!lua flags=no-writes
-- snapshot: reads one bucket of an item at one instant.
-- KEYS[1] sale
-- KEYS[2] held
-- REPLY absent: the item is not in this Redis
-- REPLY present epoch buckets state available confirmed_units held: held counts holds that are not settled
-- INVARIANT nothing is written.

local sale_key, held_key = KEYS[1], KEYS[2]

local sale = redis.call('HMGET', sale_key, 'epoch', 'buckets', 'state', 'available', 'confirmed_units')
if not sale[1] then
  return 'absent'
end
local held = redis.call('ZCARD', held_key)
return table.concat({ 'present', sale[1], sale[2], sale[3], sale[4], sale[5], held }, ' ')
