#!lua flags=no-writes
-- find_hold: reads one hold, and whether its bucket is live.
-- KEYS[1] sale
-- KEYS[2] hold of the request
-- ARGV[1] buckets that the caller knows
-- HEAD live: the item is open; a hold that is not here does not exist
-- HEAD not_live: the item is not in this Redis, not completely, or this server may have forgotten some of it
-- HEAD moved epoch buckets: the caller's layout is old; nothing was looked at
-- REPLY none: there is no hold
-- REPLY found state verdict reservation_id buyer quantity: an empty verdict is `-`
-- INVARIANT nothing is written.

local sale_key, hold_key, known_buckets = KEYS[1], KEYS[2], ARGV[1]

local sale = redis.call('HMGET', sale_key, 'epoch', 'state', 'incarnation', 'buckets')
local epoch, is_live, buckets = sale[1], sale[2] == 'open' and sale[3] == incarnation(), sale[4]
if epoch and buckets ~= known_buckets then
  return { 'moved ' .. epoch .. ' ' .. buckets, 'none' }
end
local head = is_live and 'live' or 'not_live'
local hold = read_record(redis.call('GET', hold_key))
if not hold or is_forgotten(hold, epoch) then
  return { head, 'none' }
end
local verdict = hold.verdict ~= '' and hold.verdict or '-'
return { head, table.concat({ 'found', hold.state, verdict, hold.reservation_id, hold.buyer, hold.quantity }, ' ') }
