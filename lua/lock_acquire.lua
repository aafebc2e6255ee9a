#!lua flags=allow-oom
-- lock_acquire: gives an item's lock to whoever has waited longest, under a number higher than any before.
-- KEYS[1] lock
-- KEYS[2] fence
-- KEYS[3] waiting
-- ARGV[1] token of this acquisition
-- ARGV[2] lease_ms
-- ARGV[3] floor: the fence will be higher
-- ARGV[4] holder
-- ARGV[5] purpose
-- ARGV[6] presence_ms: for how long the caller keeps its place without asking again; 0 gives it up
-- ARGV[7] most callers that have a place
-- REPLY taken fence: the caller has it for a whole lease; asked again with its token, under the same fence
-- REPLY busy fence since_ms left_ms waiting holder purpose: another one has it, or is the next to have it
-- INVARIANT one token at a time has the lock, nobody else's lease gets longer or shorter, and fences only rise.

local lock_key, fence_key, waiting_key = KEYS[1], KEYS[2], KEYS[3]
local token, lease_ms, floor = ARGV[1], ARGV[2], tonumber(ARGV[3])
local holder, purpose = ARGV[4], ARGV[5]
local presence_ms, most_places = tonumber(ARGV[6]), tonumber(ARGV[7])

local now = now_ms()
local lock = redis.call('HMGET', lock_key, 'token', 'fence', 'since_ms', 'holder', 'purpose')
local left_ms = redis.call('PTTL', lock_key)
local counter = tonumber(redis.call('GET', fence_key) or 0)
local places = redis.call('HGETALL', waiting_key)

-- A place is `ticket|present until|holder|purpose`. Whoever has not asked for too long has left.
local left, others, last_ticket, own_ticket, first = {}, 0, 0, nil, nil
for i = 1, #places, 2 do
  local ticket, until_ms, who, why = string.match(places[i + 1], '^([^|]+)|([^|]+)|([^|]+)|([^|]+)$')
  ticket, until_ms = tonumber(ticket), tonumber(until_ms)
  last_ticket = math.max(last_ticket, ticket)
  if places[i] == token then
    own_ticket = ticket
  elseif until_ms <= now then
    left[#left + 1] = places[i]
  else
    others = others + 1
    if not first or ticket < first.ticket then
      first = { ticket = ticket, left_ms = until_ms - now, holder = who, purpose = why }
    end
  end
end

local is_own = lock[1] == token
local is_free = not lock[1] or left_ms < 0
local is_next = not first or (own_ticket and own_ticket < first.ticket)
local fence = is_own and tonumber(lock[2]) or math.max(counter, floor) + 1
local since_ms = is_own and lock[3] or whole(now)

-- Point of no return: everything above only read, everything below only writes.
if #left > 0 then
  redis.call('HDEL', waiting_key, unpack(left))
end
if is_own or (is_free and is_next) then
  redis.call('SET', fence_key, whole(math.max(counter, fence)))
  redis.call('HSET', lock_key, 'token', token, 'fence', whole(fence), 'since_ms', since_ms,
    'holder', holder, 'purpose', purpose)
  redis.call('PEXPIRE', lock_key, lease_ms)
  redis.call('HDEL', waiting_key, token)
  return 'taken ' .. whole(fence)
end
if presence_ms > 0 and (own_ticket or others < most_places) then
  local place = { whole(own_ticket or last_ticket + 1), whole(now + presence_ms), holder, purpose }
  redis.call('HSET', waiting_key, token, table.concat(place, '|'))
  redis.call('PEXPIRE', waiting_key, whole(presence_ms))
else
  redis.call('HDEL', waiting_key, token)
end
if is_free then
  return table.concat({ 'busy', whole(counter), whole(now), whole(first.left_ms), others,
    first.holder, first.purpose }, ' ')
end
return table.concat({ 'busy', lock[2], lock[3], whole(left_ms), others, lock[4], lock[5] }, ' ')
