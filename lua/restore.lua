#!lua flags=allow-oom
-- restore: gives the stock of holds back that the ledger did not sell, and writes down why.
-- KEYS[1] sale
-- KEYS[2] buyers
-- KEYS[3] held
-- KEYS[4..] hold of each request
-- ARGV[1] buckets that the caller knows
-- ARGV[2] retention_ms: how long a settled record outlives its sale
-- ARGV[3..] for each request: request id, reservation id, buyer, quantity, epoch, verdict
-- HEAD ok: one REPLY for each request follows
-- HEAD moved epoch buckets: the caller's layout is old; nothing was looked at
-- REPLY done: the hold's own units went back
-- REPLY already: they had gone back before
-- REPLY conflict state reservation_id: the record belongs to another reservation, or is confirmed
-- REPLY unseen: there was no hold; the verdict is written as a tombstone, no stock moves
-- INVARIANT units go back at most once per reservation, and only from state held.

local sale_key, buyers_key, held_key = KEYS[1], KEYS[2], KEYS[3]
local known_buckets, retention_ms = ARGV[1], ARGV[2]
local FIRST_HOLD, FIRST_REQUEST, REQUEST_WIDTH = 4, 3, 6

local sale = redis.call('HMGET', sale_key, 'epoch', 'closes_at_ms', 'limit_per_buyer', 'buckets')
local epoch, closes_at_ms, is_limited, buckets = sale[1], sale[2], sale[3], sale[4]
if epoch and buckets ~= known_buckets then
  return { 'moved ' .. epoch .. ' ' .. buckets }
end
local holds = redis.call('MGET', unpack(KEYS, FIRST_HOLD))
local now = now_ms()

local replies, settled, settled_ids, restored_units, by_request = { 'ok' }, {}, {}, 0, {}
for i = 1, #holds do
  local at = FIRST_REQUEST + (i - 1) * REQUEST_WIDTH
  local request_id, reservation_id, verdict = ARGV[at], ARGV[at + 1], ARGV[at + 5]
  local hold = by_request[request_id] or read_record(holds[i])
  if is_forgotten(hold, epoch) then
    hold = nil
  end

  local reply
  if not hold then
    hold = {
      state = 'restored', verdict = verdict, epoch = ARGV[at + 4], reservation_id = reservation_id,
      buyer = ARGV[at + 2], quantity = ARGV[at + 3], reserved_at_ms = whole(now), tries = '0',
    }
    settled[#settled + 1] = { key = KEYS[FIRST_HOLD + i - 1], hold = hold }
    settled_ids[#settled_ids + 1] = request_id
    reply = 'unseen'
  elseif hold.reservation_id ~= reservation_id or hold.state == 'confirmed' then
    reply = table.concat({ 'conflict', hold.state, hold.reservation_id }, ' ')
  elseif hold.state == 'restored' then
    reply = 'already'
  else
    hold.state, hold.verdict = 'restored', verdict
    restored_units = restored_units + tonumber(hold.quantity)
    settled[#settled + 1] = { key = KEYS[FIRST_HOLD + i - 1], hold = hold, gives_back = true }
    settled_ids[#settled_ids + 1] = request_id
    reply = 'done'
  end
  by_request[request_id] = hold
  replies[i + 1] = reply
end

-- Point of no return: everything above only read, everything below only writes.
local keep_until = kept_until(closes_at_ms, now, retention_ms)
for _, one in ipairs(settled) do
  redis.call('SET', one.key, write_record(one.hold), 'PXAT', keep_until)
  if one.gives_back and is_limited then
    if redis.call('HINCRBY', buyers_key, one.hold.buyer, '-' .. one.hold.quantity) <= 0 then
      redis.call('HDEL', buyers_key, one.hold.buyer)
    end
  end
end
if #settled_ids > 0 then
  redis.call('ZREM', held_key, unpack(settled_ids))
end
if restored_units > 0 then
  redis.call('HINCRBY', sale_key, 'available', restored_units)
  redis.call('HINCRBY', sale_key, 'restored_units', restored_units)
end
return replies
