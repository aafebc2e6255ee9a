#!lua flags=allow-oom
-- forget_lock: removes what is left of an item's lock once the item has left Redis.
-- KEYS[1] lock
-- KEYS[2] fence
-- REPLY forgotten: the next fence follows the highest that the ledger has
-- REPLY busy: somebody has the lock
-- INVARIANT nobody loses a lock.

local lock_key, fence_key = KEYS[1], KEYS[2]

if redis.call('HGET', lock_key, 'token') then
  return 'busy'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('UNLINK', fence_key)
return 'forgotten'
