#!lua flags=allow-oom
-- forget_holds: lets holds of a bucket that is about to be built anew expire, some at a time; their stock goes with the bucket.
-- KEYS[1] sale
-- KEYS[2] held
-- KEYS[3] prefix of the holds' keys; a request id completes it
-- ARGV[1] epoch of the warm-up that builds it anew
-- ARGV[2] most holds to forget
-- ARGV[3] retention_ms: how long a hold outlives this or its sale
-- ARGV[4] fence of the item lock
-- REPLY forgotten left: so many are left to forget
-- REPLY live epoch: the bucket sells under this epoch, or is of a later one, and keeps its holds
-- INVARIANT nothing of a live bucket is forgotten; a record that is settled in the meantime stays settled.

local sale_key, held_key, hold_prefix = KEYS[1], KEYS[2], KEYS[3]
local epoch, most, retention_ms, fence = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local sale = redis.call('HMGET', sale_key,
  'epoch', 'state', 'incarnation', 'closes_at_ms', 'fence', 'frozen_until_ms')
local now = now_ms()
local is_frozen = sale[5] == fence and now < tonumber(sale[6] or 0)
local is_selling = sale[2] == 'open' and sale[3] == incarnation() and not is_frozen
if is_selling or tonumber(sale[1] or 0) >= tonumber(epoch) then
  return 'live ' .. sale[1]
end
local request_ids = redis.call('ZRANGE', held_key, 0, most - 1)
local left = redis.call('ZCARD', held_key) - #request_ids
local keep_until = kept_until(sale[4], now, retention_ms)

-- Point of no return: everything above only read, everything below only writes.
for _, request_id in ipairs(request_ids) do
  redis.call('PEXPIREAT', hold_prefix .. request_id, keep_until)
  redis.call('ZREM', held_key, request_id)
end
return 'forgotten ' .. left
