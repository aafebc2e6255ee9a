#!lua flags=no-writes
-- scan_totals: reads one page of the totals of buyers.
-- KEYS[1] buyers
-- ARGV[1] cursor: 0 for the first page, then what the last page said
-- ARGV[2] about how many totals to read
-- HEAD page cursor: cursor 0 says that this was the last page
-- REPLY buyer units: a buyer may be told on two pages
-- INVARIANT nothing is written; a buyer who is there from the first page to the last is told.

local buyers_key, cursor, count = KEYS[1], ARGV[1], ARGV[2]

local page = redis.call('HSCAN', buyers_key, cursor, 'COUNT', count)
local replies, entries = { 'page ' .. page[1] }, page[2]
for i = 1, #entries, 2 do
  replies[#replies + 1] = 'buyer ' .. entries[i] .. ' ' .. entries[i + 1]
end
return replies
