#!lua flags=allow-oom
-- lock_release: frees the lock that the token has; its fence stays used.
-- KEYS[1] lock
-- ARGV[1] token of the acquisition
-- REPLY released: the lock is free
-- REPLY lost: it was nobody's, or is somebody else's, and stays so
-- INVARIANT nobody else's lock is freed.

local lock_key, token = KEYS[1], ARGV[1]

if redis.call('HGET', lock_key, 'token') ~= token then
  return 'lost'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('UNLINK', lock_key)
return 'released'
