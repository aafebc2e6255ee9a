#!lua flags=no-writes
-- lock_show: reads who has an item's lock, and how many wait for it.
-- KEYS[1] lock
-- KEYS[2] fence
-- KEYS[3] waiting
-- REPLY free fence: nobody has it; the fence is the last one given
-- REPLY held fence since_ms left_ms waiting holder purpose: left_ms of the lease, unless it is renewed
-- INVARIANT nothing is written.

local lock_key, fence_key, waiting_key = KEYS[1], KEYS[2], KEYS[3]

local now = now_ms()
local lock = redis.call('HMGET', lock_key, 'fence', 'since_ms', 'holder', 'purpose')
local left_ms = redis.call('PTTL', lock_key)
if not lock[1] or left_ms < 0 then
  return 'free ' .. (redis.call('GET', fence_key) or '0')
end
local places = redis.call('HGETALL', waiting_key)
local waiting = 0
for i = 2, #places, 2 do
  if tonumber(string.match(places[i], '^[^|]+|([^|]+)')) > now then
    waiting = waiting + 1
  end
end
return table.concat({ 'held', lock[1], lock[2], whole(left_ms), waiting, lock[3], lock[4] }, ' ')
