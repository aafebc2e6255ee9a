#!lua flags=no-writes
-- find_holds: reads the holds of many requests of one bucket.
-- KEYS[1] sale
-- KEYS[2..] hold of each request
-- REPLY none: there is no hold
-- REPLY found state verdict reservation_id buyer quantity reserved_at_ms tries: an empty verdict is `-`
-- INVARIANT nothing is written.

local sale_key = KEYS[1]
local FIRST_HOLD = 2

local epoch = redis.call('HGET', sale_key, 'epoch')
local holds = redis.call('MGET', unpack(KEYS, FIRST_HOLD))

local replies = {}
for i = 1, #holds do
  local hold = read_record(holds[i])
  if not hold or is_forgotten(hold, epoch) then
    replies[i] = 'none'
  else
    local verdict = hold.verdict ~= '' and hold.verdict or '-'
    replies[i] = table.concat({ 'found', hold.state, verdict, hold.reservation_id, hold.buyer, hold.quantity,
      hold.reserved_at_ms, hold.tries }, ' ')
  end
end
return replies
