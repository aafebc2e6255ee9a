#!lua flags=allow-oom
-- claim_overdue: says how a bucket stands, hands over its holds that are due for a look, and puts the next look off, in one step, so that two reconcilers never do the same work.
-- KEYS[1] sale
-- KEYS[2] held
-- KEYS[3] unseen
-- KEYS[4] moving
-- KEYS[5] prefix of the holds' keys; a request id completes it
-- ARGV[1] most holds to hand over
-- ARGV[2] first_look_ms: pause after the first look; it doubles with each further one
-- ARGV[3] longest_pause_ms
-- HEAD absent: the item is not in this Redis; nothing is handed over
-- HEAD present epoch buckets state is_same held unseen moving: moving counts transfers that are not finished; is_same is 1 on the server on which the bucket was last compared, else 0; only of an open bucket there is anything handed over
-- REPLY overdue request_id reservation_id epoch buyer quantity reserved_at_ms tries: one line for each hold
-- REPLY gone request_id: the hold's record is not there; its entry is removed
-- INVARIANT no stock moves, no hold changes its state.

local sale_key, held_key, unseen_key, moving_key, hold_prefix = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local most, first_look_ms, longest_pause_ms = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local sale = redis.call('HMGET', sale_key, 'epoch', 'state', 'incarnation', 'buckets')
local epoch, state = sale[1], sale[2]
if not epoch then
  return { 'absent' }
end
local is_same = sale[3] == incarnation()
local head = table.concat({ 'present', epoch, sale[4], state, is_same and 1 or 0,
  redis.call('ZCARD', held_key), redis.call('ZCARD', unseen_key), redis.call('ZCARD', moving_key) }, ' ')
if state ~= 'open' or not is_same then
  return { head }
end

local now = now_ms()
local due = redis.call('ZRANGEBYSCORE', held_key, '-inf', whole(now), 'LIMIT', 0, most)
if #due == 0 then
  return { head }
end
local keys = {}
for i, request_id in ipairs(due) do
  keys[i] = hold_prefix .. request_id
end
local holds = redis.call('MGET', unpack(keys))

-- Point of no return: everything above only read, everything below only writes.
local replies = { head }
for i, request_id in ipairs(due) do
  local hold = read_record(holds[i])
  if hold and hold.state == 'held' then
    local tries = tonumber(hold.tries)
    local pause = math.min(first_look_ms * 2 ^ tries, longest_pause_ms)
    hold.tries = whole(tries + 1)
    redis.call('SET', keys[i], write_record(hold))
    redis.call('ZADD', held_key, whole(now + pause), request_id)
    replies[i + 1] = table.concat({ 'overdue', request_id, hold.reservation_id, hold.epoch, hold.buyer,
      hold.quantity, hold.reserved_at_ms, hold.tries }, ' ')
  else
    redis.call('ZREM', held_key, request_id)
    replies[i + 1] = 'gone ' .. request_id
  end
end
return replies
