-- record: how a hold is written down. Goes in front of every script that reads or writes holds.
-- A hold is one string, `state|verdict|epoch|reservation id|buyer|quantity|reserved_at_ms|tries`,
-- because one string costs Redis less memory than a small hash. No part can contain `|`.

local function read_record(text)
  if not text then
    return nil
  end
  local state, verdict, epoch, reservation_id, buyer, quantity, reserved_at_ms, tries =
    string.match(text, '^(%a+)|([^|]*)|(%d+)|([^|]+)|([^|]+)|(%d+)|(%d+)|(%d+)$')
  return {
    state = state,
    verdict = verdict,
    epoch = epoch,
    reservation_id = reservation_id,
    buyer = buyer,
    quantity = quantity,
    reserved_at_ms = reserved_at_ms,
    tries = tries,
  }
end

local function write_record(hold)
  return table.concat({
    hold.state,
    hold.verdict,
    hold.epoch,
    hold.reservation_id,
    hold.buyer,
    hold.quantity,
    hold.reserved_at_ms,
    hold.tries,
  }, '|')
end

-- A hold of an earlier warm-up took stock that no longer exists: it counts as unseen.
local function is_forgotten(hold, epoch)
  return hold ~= nil and hold.state == 'held' and hold.epoch ~= epoch
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Which server this is: the id changes when it restarts, or is promoted, and may then have forgotten
-- what it answered before. (`run_id` is no use: it survives a demotion and a promotion.)
local function incarnation()
  if not CHECKS_INCARNATION then
    return 'unchecked'
  end
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') or 'hidden'
end

-- Numbers are printed whole: Lua would write 1e+14 from a hundred thousand milliards on.
local function whole(number)
  return string.format('%.0f', number)
end

-- A settled record outlives its sale by the retention, so that late repeats still find it.
local function kept_until(closes_at_ms, now, retention_ms)
  return whole(math.max(now, tonumber(closes_at_ms or 0)) + tonumber(retention_ms))
end
