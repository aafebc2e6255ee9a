#!lua
-- bind_store: makes this Redis the store that the ledger names, unless it is another one.
-- KEYS[1] store
-- ARGV[1] id of the store
-- ARGV[2] id that the ledger named until now, empty for none
-- REPLY bound: this Redis is that store
-- REPLY already id: this Redis is another store, and stays so
-- INVARIANT no id is overwritten but the one that the ledger has just given up.

local store_key = KEYS[1]
local id, replaced = ARGV[1], ARGV[2]

local current = redis.call('GET', store_key)
if current and current ~= id and current ~= replaced then
  return 'already ' .. current
end

-- Point of no return: everything above only read, everything below only writes.
redis.call('SET', store_key, id)
return 'bound'
