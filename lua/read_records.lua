#!lua flags=no-writes
-- read_records: reads what Redis has written down of requests.
-- KEYS[1] unseen
-- KEYS[2..] hold of each request
-- ARGV[1..] for each request: request id
-- REPLY none: there is no record
-- REPLY record state reservation_id is_unseen: is_unseen is 1 when it was confirmed without a hold since the last comparison, else 0
-- INVARIANT nothing is written.

local unseen_key = KEYS[1]
local FIRST_HOLD, FIRST_REQUEST, REQUEST_WIDTH = 2, 1, 1

local replies = {}
for i, text in ipairs(redis.call('MGET', unpack(KEYS, FIRST_HOLD))) do
  local at = FIRST_REQUEST + (i - 1) * REQUEST_WIDTH
  local hold = read_record(text)
  if hold then
    local is_unseen = redis.call('ZSCORE', unseen_key, ARGV[at]) and 1 or 0
    replies[i] = table.concat({ 'record', hold.state, hold.reservation_id, is_unseen }, ' ')
  else
    replies[i] = 'none'
  end
end
return replies
