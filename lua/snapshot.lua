#!lua flags=no-writes
-- snapshot: reads the numbers of one bucket at one instant.
-- KEYS[1] sale
-- KEYS[2] held
-- KEYS[3] unseen
-- KEYS[4] moving
-- REPLY absent: the item is not in this Redis
-- REPLY present epoch buckets state incarnation stamped version fence available confirmed_units restored_units held unseen moving transfers frozen_ms paused now_ms: incarnation is this server's, stamped the one on which the bucket was last made to agree with the ledger; frozen_ms is how long it stays frozen; moving counts units that are on their way to other buckets, transfers how often units came or came back; not paused is `-`
-- INVARIANT nothing is written.

local sale_key, held_key, unseen_key, moving_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local sale = redis.call('HMGET', sale_key, 'epoch', 'buckets', 'state', 'incarnation', 'version',
  'fence', 'available', 'confirmed_units', 'restored_units', 'frozen_until_ms', 'paused', 'transfers')
if not sale[1] then
  return 'absent'
end
local now = now_ms()
local held, unseen = redis.call('ZCARD', held_key), redis.call('ZCARD', unseen_key)
-- A transfer is written down as `id|number of the bucket that was short|units`.
local moving = 0
for _, transfer in ipairs(redis.call('ZRANGE', moving_key, 0, -1)) do
  moving = moving + tonumber(string.match(transfer, '[0-9]+$'))
end
return table.concat({ 'present', sale[1], sale[2], sale[3], incarnation(), sale[4] or '-', sale[5],
  sale[6] or 0, sale[7], sale[8], sale[9] or 0, held, unseen, whole(moving), sale[12] or 0,
  whole(math.max(0, tonumber(sale[10] or 0) - now)), sale[11] or '-', whole(now) }, ' ')
