#!lua flags=no-writes
-- read_holds: reads one page of the holds of a bucket that are not settled, with its numbers at the same instant.
-- KEYS[1] sale
-- KEYS[2] held
-- KEYS[3] prefix of the holds' keys; a request id completes it
-- ARGV[1] cursor: 0 for the first page, then what the last page said
-- ARGV[2] about how many holds to read
-- HEAD page cursor epoch available confirmed_units restored_units now_ms: cursor 0 says that this was the last page
-- HEAD absent: the item is not in this Redis
-- REPLY hold request_id reservation_id buyer quantity reserved_at_ms: a hold may be told on two pages
-- INVARIANT nothing is written; a hold that is there from the first page to the last is told.

local sale_key, held_key, hold_prefix = KEYS[1], KEYS[2], KEYS[3]
local cursor, count = ARGV[1], ARGV[2]

local sale =
  redis.call('HMGET', sale_key, 'epoch', 'available', 'confirmed_units', 'restored_units')
if not sale[1] then
  return { 'absent' }
end
local page = redis.call('ZSCAN', held_key, cursor, 'COUNT', count)
local next_cursor, entries = page[1], page[2]
local replies = { table.concat({ 'page', next_cursor, sale[1], sale[2], sale[3], sale[4] or 0,
  whole(now_ms()) }, ' ') }
local request_ids, keys = {}, {}
for i = 1, #entries, 2 do
  request_ids[#request_ids + 1] = entries[i]
  keys[#keys + 1] = hold_prefix .. entries[i]
end
if #keys == 0 then
  return replies
end
for i, text in ipairs(redis.call('MGET', unpack(keys))) do
  local hold = read_record(text)
  if hold and hold.state == 'held' then
    replies[#replies + 1] = table.concat({ 'hold', request_ids[i], hold.reservation_id, hold.buyer,
      hold.quantity, hold.reserved_at_ms }, ' ')
  end
end
return replies
