#!lua flags=no-writes
-- read_totals: reads the totals of buyers by name.
-- KEYS[1] buyers
-- ARGV[1..] for each buyer: buyer
-- REPLY total units: in the order of the names; a buyer who is not there has 0
-- INVARIANT nothing is written.

local buyers_key = KEYS[1]
local FIRST_BUYER, BUYER_WIDTH = 1, 1

local buyers, replies = {}, {}
for at = FIRST_BUYER, #ARGV, BUYER_WIDTH do
  buyers[#buyers + 1] = ARGV[at]
end
for i, units in ipairs(redis.call('HMGET', buyers_key, unpack(buyers))) do
  replies[i] = 'total ' .. (units or 0)
end
return replies
