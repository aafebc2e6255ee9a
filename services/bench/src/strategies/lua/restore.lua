-- Gives back what a request has taken, once. KEYS[1] units left, KEYS[2] what the request has taken.
local taken = redis.call('GET', KEYS[2])
if not taken then
  return 'already'
end
redis.call('UNLINK', KEYS[2])
redis.call('INCRBY', KEYS[1], taken)
return 'done'
