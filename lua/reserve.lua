#!lua
-- reserve: takes stock for a batch of purchase requests of one bucket and writes their holds, in one step.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3] held
-- KEYS[4..] hold of each request
-- ARGV[1] epoch that the caller knows
-- ARGV[2] buckets that the caller knows
-- ARGV[3] first_look_ms: after how many milliseconds the reconciler looks at an unfinished hold
-- ARGV[4..] for each request: reservation id, buyer, quantity
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
local FIRST_HOLD, FIRST_REQUEST, REQUEST_WIDTH = 4, 4, 3

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
local available, limit = tonumber(sale[4] or 0), tonumber(sale[7])
local opens_at_ms, closes_at_ms = tonumber(sale[5] or 0), tonumber(sale[6] or 0)
local frozen_until_ms, is_paused = tonumber(sale[9] or 0), sale[10]

-- Why nobody takes anything now.
local refusal
if state ~= 'open' then
  refusal = 'not_warm'
elseif now < opens_at_ms then
  refusal = 'not_open'
elseif now >= closes_at_ms then
  refusal = 'ended'
elseif is_paused then
  refusal = 'paused'
elseif now < frozen_until_ms then
  refusal = 'frozen'
end

local totals = {}
if limit and not refusal then
  local names = {}
  for i = 1, count do
    names[i] = ARGV[FIRST_REQUEST + (i - 1) * REQUEST_WIDTH + 1]
  end
  local known = redis.call('HMGET', buyers_key, unpack(names))
  for i = 1, count do
    totals[names[i]] = tonumber(known[i] or 0)
  end
end

-- Most requests come too late: for them no table and no text is made.
local replies, left, now_text, held_now = { 'ok' }, available, nil, nil
local new_records, by_key, new_totals = {}, {}, {}
for i = 1, count do
  local at = FIRST_REQUEST + (i - 1) * REQUEST_WIDTH
  local hold_key, quantity = KEYS[FIRST_HOLD + i - 1], ARGV[at + 2]
  local text = by_key[hold_key] or holds[i]
  local hold = text and read_record(text)
  if hold and is_forgotten(hold, epoch) then
    hold = nil
  end

  local reply = refusal
  if hold and hold.quantity ~= quantity then
    reply = 'key_reused'
  elseif hold and hold.state == 'held' and hold.reservation_id == ARGV[at] then
    reply = table.concat({ 'held', hold.epoch, hold.reserved_at_ms }, ' ')
  elseif hold then
    local verdict = hold.verdict ~= '' and hold.verdict or '-'
    reply = table.concat({ 'repeat', hold.state, verdict, hold.reservation_id,
      hold.epoch, hold.reserved_at_ms }, ' ')
  elseif not refusal then
    local buyer, units = ARGV[at + 1], tonumber(quantity)
    if limit and totals[buyer] + units > limit then
      reply = 'limit_reached'
    elseif units > left then
      reply = 'sold_out'
    else
      if not held_now then
        now_text = whole(now)
        held_now = table.concat({ 'held', epoch, now_text }, ' ')
      end
      left = left - units
      local n = #new_records
      if limit then
        totals[buyer] = totals[buyer] + units
        new_totals[n + 1], new_totals[n + 2] = buyer, totals[buyer]
      end
      text = write_new('held', epoch, ARGV[at], buyer, quantity, now_text)
      new_records[n + 1], new_records[n + 2] = hold_key, text
      by_key[hold_key] = text
      reply = held_now
    end
  end
  replies[i + 1] = reply
end

if left == available then
  return replies
end
local look_at, to_look_at = whole(now + first_look_ms), {}
for i = 1, #new_records, 2 do
  to_look_at[i], to_look_at[i + 1] = look_at, request_id_of(new_records[i])
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('MSET', unpack(new_records))
redis.call('ZADD', held_key, unpack(to_look_at))
if limit then
  redis.call('HSET', buyers_key, unpack(new_totals))
end
redis.call('HINCRBY', sale_key, 'available', left - available)
return replies
