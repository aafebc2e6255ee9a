#!lua flags=no-writes
-- read_transfers: lists the unfinished transfers out of a bucket, the oldest first.
-- KEYS[1] moving
-- ARGV[1] age_ms: only those that began at least so long ago
-- ARGV[2] most transfers to list
-- REPLY transfer id home units started_at_ms: so many units are on their way to that bucket
-- INVARIANT nothing is written.

local moving_key, age_ms, most = KEYS[1], tonumber(ARGV[1]), ARGV[2]

local before = whole(now_ms() - age_ms)
local moving = redis.call('ZRANGEBYSCORE', moving_key, '-inf', before, 'WITHSCORES', 'LIMIT', 0, most)

local replies = {}
for i = 1, #moving, 2 do
  replies[#replies + 1] = 'transfer ' .. string.gsub(moving[i], '|', ' ') .. ' ' .. moving[i + 1]
end
return replies
