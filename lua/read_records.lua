#!lua flags=no-writes
-- read_records: reads what Redis has written down of requests.
-- KEYS[1] sale
-- KEYS[2] unseen
-- KEYS[3..] hold of each request
-- ARGV[1] buckets that the caller knows
-- ARGV[2..] for each request: request id
-- HEAD ok: one REPLY for each request follows
-- HEAD moved epoch buckets: the caller's layout is old; nothing was looked at
-- REPLY none: there is no record
-- REPLY record state reservation_id is_unseen: is_unseen is 1 when it was confirmed without a hold since the last comparison, else 0
-- INVARIANT nothing is written.

local sale_key, unseen_key, known_buckets = KEYS[1], KEYS[2], ARGV[1]
local FIRST_HOLD, FIRST_REQUEST, REQUEST_WIDTH = 3, 2, 1

local sale = redis.call('HMGET', sale_key, 'epoch', 'buckets')
local epoch, buckets = sale[1], sale[2]
if epoch and buckets ~= known_buckets then
  return { 'moved ' .. epoch .. ' ' .. buckets }
end

local replies = { 'ok' }
for i, text in ipairs(redis.call('MGET', unpack(KEYS, FIRST_HOLD))) do
  local at = FIRST_REQUEST + (i - 1) * REQUEST_WIDTH
  local hold = read_record(text)
  if hold then
    local is_unseen = redis.call('ZSCORE', unseen_key, ARGV[at]) and 1 or 0
    replies[i + 1] = table.concat({ 'record', hold.state, hold.reservation_id, is_unseen }, ' ')
  else
    replies[i + 1] = 'none'
  end
end
return replies
