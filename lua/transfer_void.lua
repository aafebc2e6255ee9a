#!lua flags=allow-oom
-- transfer_void: says whether the units of a transfer have come to the bucket that was short; if not, they never will.
-- KEYS[1] transfer
-- ARGV[1] retention_ms: how long it is remembered that they must not come
-- REPLY in: they came
-- REPLY void: they did not, and will not
-- INVARIANT no stock moves; what was said once stays true for the retention.

local transfer_key, retention_ms = KEYS[1], ARGV[1]

local fate = redis.call('GET', transfer_key)
if fate then
  return fate == 'in' and 'in' or 'void'
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('SET', transfer_key, 'void', 'PX', retention_ms)
return 'void'
