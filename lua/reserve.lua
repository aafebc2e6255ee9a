#!lua
-- reserve: takes stock for a batch of purchase requests of one bucket and writes their holds, in one step.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3] held
-- KEYS[4..] hold of each request
-- ARGV[1] epoch that the caller knows
-- ARGV[2] buckets that the caller knows
-- ARGV[3] first_look_ms: after how many milliseconds the reconciler looks at an unfinished hold
-- ARGV[4..] for each request: request id, reservation id, buyer, quantity
-- HEAD ok: one REPLY for each request follows
-- HEAD moved epoch buckets: the caller's layout is old; nothing was looked at
-- HEAD not_ready: this server may have forgotten sales, and has not been compared with the ledger since
-- REPLY held epoch reserved_at_ms: the hold is this reservation's, new or asked for again
-- REPLY repeat state verdict reservation_id epoch reserved_at_ms: the request is known under a reservation; no verdict is `-`
-- REPLY key_reused: the request is known with another quantity
-- REPLY not_warm: the item is not in Redis, or not completely
-- REPLY frozen: a correction is at work; ask again in a moment
-- REPLY paused: an operator has stopped the sale until further notice
-- REPLY not_open: the sale opens later
-- REPLY ended: the sale is over
-- REPLY limit_reached: the buyer would hold more than the limit
-- REPLY sold_out: fewer units are left than were asked for
-- INVARIANT available + units held or confirmed of this epoch stays what the warm-up wrote; a refusal writes nothing.

local sale_key, buyers_key, held_key = KEYS[1], KEYS[2], KEYS[3]
local known_epoch, known_buckets, first_look_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local FIRST_HOLD, FIRST_REQUEST, REQUEST_WIDTH = 4, 4, 4

local sale = redis.call('HMGET', sale_key,
  'epoch', 'buckets', 'state', 'available', 'opens_at_ms', 'closes_at_ms', 'limit_per_buyer',
  'incarnation', 'frozen_until_ms', 'paused')
local epoch, buckets, state = sale[1], sale[2], sale[3]
if epoch and (epoch ~= known_epoch or buckets ~= known_buckets) then
  return { 'moved ' .. epoch .. ' ' .. buckets }
end
if state == 'open' and sale[8] ~= incarnation() then
  return { 'not_ready' }
end

local count = #KEYS - FIRST_HOLD + 1
local now = now_ms()
local holds = redis.call('MGET', unpack(KEYS, FIRST_HOLD))
local opens_at_ms, closes_at_ms = tonumber(sale[5] or 0), tonumber(sale[6] or 0)
local available, limit = tonumber(sale[4] or 0), tonumber(sale[7])
local is_frozen, is_paused = now < tonumber(sale[9] or 0), sale[10]

local totals = {}
if limit then
  local names = {}
  for i = 1, count do
    names[i] = ARGV[FIRST_REQUEST + (i - 1) * REQUEST_WIDTH + 2]
  end
  local known = redis.call('HMGET', buyers_key, unpack(names))
  for i = 1, count do
    totals[names[i]] = tonumber(known[i] or 0)
  end
end

local replies, taken, new_holds, by_request = { 'ok' }, 0, {}, {}
for i = 1, count do
  local at = FIRST_REQUEST + (i - 1) * REQUEST_WIDTH
  local request_id, reservation_id, buyer, quantity = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local units = tonumber(quantity)
  local hold = by_request[request_id] or read_record(holds[i])
  if is_forgotten(hold, epoch) then
    hold = nil
  end

  local reply
  if hold and hold.quantity ~= quantity then
    reply = 'key_reused'
  elseif hold and hold.state == 'held' and hold.reservation_id == reservation_id then
    reply = table.concat({ 'held', hold.epoch, hold.reserved_at_ms }, ' ')
  elseif hold then
    local verdict = hold.verdict ~= '' and hold.verdict or '-'
    reply = table.concat({ 'repeat', hold.state, verdict, hold.reservation_id,
      hold.epoch, hold.reserved_at_ms }, ' ')
  elseif state ~= 'open' then
    reply = 'not_warm'
  elseif now < opens_at_ms then
    reply = 'not_open'
  elseif now >= closes_at_ms then
    reply = 'ended'
  elseif is_paused then
    reply = 'paused'
  elseif is_frozen then
    reply = 'frozen'
  elseif limit and totals[buyer] + units > limit then
    reply = 'limit_reached'
  elseif units > available - taken then
    reply = 'sold_out'
  else
    hold = {
      state = 'held', verdict = '', epoch = epoch, reservation_id = reservation_id, buyer = buyer,
      quantity = quantity, reserved_at_ms = whole(now), tries = '0',
    }
    taken = taken + units
    if limit then
      totals[buyer] = totals[buyer] + units
    end
    by_request[request_id] = hold
    new_holds[#new_holds + 1] = { key = KEYS[FIRST_HOLD + i - 1], request_id = request_id, hold = hold }
    reply = table.concat({ 'held', epoch, hold.reserved_at_ms }, ' ')
  end
  replies[i + 1] = reply
end

if #new_holds == 0 then
  return replies
end

-- Point of no return: everything above only read, everything below only writes.
local look_at = whole(now + first_look_ms)
local to_look_at = {}
for _, new in ipairs(new_holds) do
  redis.call('SET', new.key, write_record(new.hold))
  if limit then
    redis.call('HINCRBY', buyers_key, new.hold.buyer, new.hold.quantity)
  end
  to_look_at[#to_look_at + 1] = look_at
  to_look_at[#to_look_at + 1] = new.request_id
end
redis.call('ZADD', held_key, unpack(to_look_at))
redis.call('HINCRBY', sale_key, 'available', -taken)
return replies
