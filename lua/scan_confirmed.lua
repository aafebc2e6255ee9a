#!lua flags=no-writes
-- scan_confirmed: reads one page of the confirmed records of a bucket, by going through all keys of this Redis.
-- KEYS[1] prefix of the holds' keys; a request id completes it
-- ARGV[1] cursor: 0 for the first page, then what the last page said
-- ARGV[2] about how many keys to look at
-- HEAD page cursor: cursor 0 says that this was the last page
-- REPLY confirmed request_id reservation_id epoch buyer quantity reserved_at_ms: a record may be told on two pages
-- INVARIANT nothing is written; a record that is there from the first page to the last is told.

local hold_prefix, cursor, count = KEYS[1], ARGV[1], ARGV[2]

local page = redis.call('SCAN', cursor, 'MATCH', hold_prefix .. '*', 'COUNT', count)
local replies, keys = { 'page ' .. page[1] }, page[2]
if #keys == 0 then
  return replies
end
for i, text in ipairs(redis.call('MGET', unpack(keys))) do
  local hold = read_record(text)
  if hold and hold.state == 'confirmed' then
    replies[#replies + 1] = table.concat({ 'confirmed', string.sub(keys[i], #hold_prefix + 1),
      hold.reservation_id, hold.epoch, hold.buyer, hold.quantity, hold.reserved_at_ms }, ' ')
  end
end
return replies
