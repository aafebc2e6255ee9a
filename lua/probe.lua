#!lua
-- probe: shows that this Redis runs scripts, which a PING would not.
-- REPLY ready: it does
-- INVARIANT nothing is read or written.

return 'ready'
