#!lua flags=no-writes
-- read_totals: reads the totals of buyers by name.
-- KEYS[1] buyers
-- ARGV[1..] for each buyer: buyer
-- REPLY total units: in the order of the names; a buyer who is not there has 0
-- INVARIANT nothing is written.

local buyers_key = KEYS[1]

local replies = {}
for i, units in ipairs(redis.call('HMGET', buyers_key, unpack(ARGV))) do
  replies[i] = 'total ' .. (units or 0)
end
return replies
