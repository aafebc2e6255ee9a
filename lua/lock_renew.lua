#!lua flags=allow-oom
-- lock_renew: lets a lease begin anew for the token that has the lock.
-- KEYS[1] lock
-- ARGV[1] token of the acquisition
-- ARGV[2] lease_ms
-- REPLY renewed: the lock is the caller's for a whole lease
-- REPLY lost: it is nobody's, or somebody else's, and stays so
-- INVARIANT nobody else's lease gets longer.

local lock_key, token, lease_ms = KEYS[1], ARGV[1], ARGV[2]

if redis.call('HGET', lock_key, 'token') ~= token then
  return 'lost'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('PEXPIRE', lock_key, lease_ms)
return 'renewed'
