-- Takes units if enough are left, once for each request. KEYS[1] units left, KEYS[2] what the request
-- has taken; ARGV[1] units, ARGV[2] seconds for which a request is remembered.
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 'taken'
end
local left = tonumber(redis.call('GET', KEYS[1]))
if left == nil then
  return 'unknown_item'
end
if left < tonumber(ARGV[1]) then
  return 'sold_out'
end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
return 'taken'
