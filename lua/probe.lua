#!lua
-- probe: shows that a server runs scripts, which a PING would not, on a slot that it serves.
-- KEYS[1] any key of such a slot
-- REPLY ready: it does
-- INVARIANT nothing is read or written.

local _ = KEYS[1]

return 'ready'
