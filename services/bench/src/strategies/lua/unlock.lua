-- Frees a lock that is still the caller's, and wakes somebody who waits for it. KEYS[1] the lock,
-- KEYS[2] the channel of those who wait; ARGV[1] the caller's token, ARGV[2] the item.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 'lost'
end
redis.call('UNLINK', KEYS[1])
redis.call('PUBLISH', KEYS[2], ARGV[2])
return 'done'
