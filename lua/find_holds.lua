#!lua flags=no-writes
-- find_holds: reads the holds of many requests of one bucket.
-- KEYS[1] sale
-- KEYS[2..] hold of each request
-- ARGV[1] buckets that the caller knows
-- HEAD ok: one REPLY for each request follows
-- HEAD moved epoch buckets: the caller's layout is old; nothing was looked at
-- REPLY none: there is no hold
-- REPLY found state verdict reservation_id buyer quantity reserved_at_ms tries: an empty verdict is `-`
-- INVARIANT nothing is written.

local sale_key, known_buckets = KEYS[1], ARGV[1]
local FIRST_HOLD = 2

local sale = redis.call('HMGET', sale_key, 'epoch', 'buckets')
local epoch, buckets = sale[1], sale[2]
if epoch and buckets ~= known_buckets then
  return { 'moved ' .. epoch .. ' ' .. buckets }
end
local holds = redis.call('MGET', unpack(KEYS, FIRST_HOLD))

local replies = { 'ok' }
for i = 1, #holds do
  local hold = read_record(holds[i])
  if not hold or is_forgotten(hold, epoch) then
    replies[i + 1] = 'none'
  else
    local verdict = hold.verdict ~= '' and hold.verdict or '-'
    replies[i + 1] = table.concat({ 'found', hold.state, verdict, hold.reservation_id, hold.buyer, hold.quantity,
      hold.reserved_at_ms, hold.tries }, ' ')
  end
end
return replies
