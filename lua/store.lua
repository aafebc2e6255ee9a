#!lua flags=no-writes
-- store: reads which store this Redis is for a deployment.
-- KEYS[1] store
-- REPLY none: it has not been bound, or has lost its data
-- REPLY store id: it is that one
-- INVARIANT nothing is written.

local store_key = KEYS[1]

local id = redis.call('GET', store_key)
if not id then
  return 'none'
end
return 'store ' .. id
