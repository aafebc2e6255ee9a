#!lua
-- warm_page: adds one page of decided orders to a bucket that is being built, so that limits and
-- the answers to repeated keys survive a loss of Redis.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3..] hold of each order's request
-- ARGV[1] epoch of this warm-up
-- ARGV[2] retention_ms: how long a settled record outlives its sale
-- ARGV[3] is_last: 1 when the bucket is complete with this page, else 0
-- ARGV[4..] for each order: state, verdict, reservation id, buyer, quantity, the buyer's confirmed total
-- REPLY building: the page is in
-- REPLY built: the page is in, and it was the last
-- REPLY moved epoch: another warm-up is at work
-- INVARIANT writing a page twice changes nothing.

local sale_key, buyers_key = KEYS[1], KEYS[2]
local epoch, retention_ms, is_last = ARGV[1], ARGV[2], ARGV[3]
local FIRST_HOLD, FIRST_ORDER, ORDER_WIDTH = 3, 4, 6

local sale = redis.call('HMGET', sale_key, 'epoch', 'state', 'closes_at_ms', 'limit_per_buyer')
if sale[1] ~= epoch or sale[2] == 'open' then
  return 'moved ' .. (sale[1] or '0')
end
local now, is_limited = now_ms(), sale[4]
local now_text, keep_until = whole(now), kept_until(sale[3], now, retention_ms)

-- Point of no return: everything above only read, everything below only writes.
local totals = {}
for i = FIRST_HOLD, #KEYS do
  local at = FIRST_ORDER + (i - FIRST_HOLD) * ORDER_WIDTH
  local state, verdict, reservation_id, buyer, quantity, total =
    ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
  local hold = {
    state = state, verdict = verdict, epoch = epoch, reservation_id = reservation_id,
    buyer = buyer, quantity = quantity, reserved_at_ms = now_text, tries = '0',
  }
  redis.call('SET', KEYS[i], write_record(hold), 'PXAT', keep_until)
  if is_limited and total ~= '0' then
    local n = #totals
    totals[n + 1], totals[n + 2] = buyer, total
  end
end
if #totals > 0 then
  redis.call('HSET', buyers_key, unpack(totals))
end
if is_last ~= '1' then
  return 'building'
end
redis.call('HSET', sale_key, 'state', 'built')
return 'built'
