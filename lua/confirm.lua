#!lua flags=allow-oom
-- confirm: makes holds final whose reservations the ledger has committed.
-- KEYS[1] sale
-- KEYS[2] held
-- KEYS[3] unseen
-- KEYS[4..] hold of each request
-- ARGV[1] buckets that the caller knows
-- ARGV[2] retention_ms: how long a settled record outlives its sale
-- ARGV[3..] for each request: request id, reservation id, buyer, quantity, epoch, reserved_at_ms
-- HEAD ok: one REPLY for each request follows
-- HEAD moved epoch buckets: the caller's layout is old; nothing was looked at
-- REPLY done: the hold is confirmed now
-- REPLY already: it was confirmed before
-- REPLY conflict state reservation_id: the record belongs to another reservation, or its stock went back
-- REPLY unseen: there was no hold; the record is written, no stock moves, a comparison is asked for
-- INVARIANT stock never moves; only a hold in state held with this reservation id changes.

local sale_key, held_key, unseen_key = KEYS[1], KEYS[2], KEYS[3]
local known_buckets, retention_ms = ARGV[1], ARGV[2]
local FIRST_HOLD, FIRST_REQUEST, REQUEST_WIDTH = 4, 3, 6

local sale = redis.call('HMGET', sale_key, 'epoch', 'closes_at_ms', 'state', 'buckets')
local epoch, closes_at_ms, is_open, buckets = sale[1], sale[2], sale[3] == 'open', sale[4]
if epoch and buckets ~= known_buckets then
  return { 'moved ' .. epoch .. ' ' .. buckets }
end
local holds = redis.call('MGET', unpack(KEYS, FIRST_HOLD))
local now = now_ms()

local replies, confirmed_units, by_request = { 'ok' }, 0, {}
local settled_ids, settled_keys, new_records, unseen_since = {}, {}, {}, {}
for i = 1, #holds do
  local at = FIRST_REQUEST + (i - 1) * REQUEST_WIDTH
  local request_id, reservation_id, buyer, quantity, of_epoch, reserved_at_ms =
    ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
  local text = by_request[request_id] or holds[i]

  local reply, new_record
  if of_epoch == epoch
    and text == write_new('held', of_epoch, reservation_id, buyer, quantity, reserved_at_ms) then
    -- Most are as they were written: they are not taken apart.
    new_record = write_new('confirmed', of_epoch, reservation_id, buyer, quantity, reserved_at_ms)
    confirmed_units = confirmed_units + tonumber(quantity)
    reply = 'done'
  else
    local hold = read_record(text)
    if is_forgotten(hold, epoch) then
      hold = nil
    end
    if not hold then
      new_record = write_new('confirmed', of_epoch, reservation_id, buyer, quantity, reserved_at_ms)
      if epoch then
        unseen_since[#unseen_since + 1] = whole(now)
        unseen_since[#unseen_since + 1] = request_id
      end
      -- What is only being built counts what the ledger had; this order may be among it.
      confirmed_units = confirmed_units + (is_open and tonumber(quantity) or 0)
      reply = 'unseen'
    elseif hold.reservation_id ~= reservation_id or hold.state == 'restored' then
      reply = table.concat({ 'conflict', hold.state, hold.reservation_id }, ' ')
    elseif hold.state == 'confirmed' then
      reply = 'already'
    else
      hold.state = 'confirmed'
      new_record = write_record(hold)
      confirmed_units = confirmed_units + tonumber(hold.quantity)
      reply = 'done'
    end
  end
  if new_record then
    local n = #settled_ids + 1
    settled_ids[n], settled_keys[n], new_records[n] = request_id, KEYS[FIRST_HOLD + i - 1], new_record
    by_request[request_id] = new_record
  end
  replies[i + 1] = reply
end

-- Point of no return: everything above only read, everything below only writes.
local keep_until = kept_until(closes_at_ms, now, retention_ms)
for n, record in ipairs(new_records) do
  redis.call('SET', settled_keys[n], record, 'PXAT', keep_until)
end
if #settled_ids > 0 then
  redis.call('ZREM', held_key, unpack(settled_ids))
end
if #unseen_since > 0 then
  redis.call('ZADD', unseen_key, unpack(unseen_since))
end
if confirmed_units > 0 then
  redis.call('HINCRBY', sale_key, 'confirmed_units', confirmed_units)
end
return replies
