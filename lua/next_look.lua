#!lua flags=no-writes
-- next_look: tells when a hold that is not settled is looked at next.
-- KEYS[1] held
-- ARGV[1] request id
-- REPLY due at_ms: no look comes before
-- REPLY none: nobody looks: the hold is settled, or there is none
-- INVARIANT nothing is written.

local held_key, request_id = KEYS[1], ARGV[1]

local at_ms = redis.call('ZSCORE', held_key, request_id)
if not at_ms then
  return 'none'
end
return 'due ' .. at_ms
