-- Prolongs a lock that is still the caller's. KEYS[1] the lock; ARGV[1] the caller's token, ARGV[2] the
-- lease in milliseconds.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 'lost'
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'done'
