-- record: how a hold is written down. Goes in front of every script that reads or writes holds.
-- A hold is one string, `state|epoch|reservation id|buyer|quantity|reserved_at_ms|tries|verdict`,
-- because one string costs Redis less memory than a small hash. With 60 characters and less it gets
-- the smallest memory that it can: so the state is its first letter, the reservation id comes in 22
-- characters from whoever calls, and tries and verdict are there only from the first of them on.
-- No part can contain `|`.

local function read_record(text)
  if not text then
    return nil
  end
  local state, epoch, reservation_id, buyer, quantity, reserved_at_ms, tries, verdict =
    string.match(text, '^(%l)|(%d+)|([^|]+)|([^|]+)|(%d+)|(%d+)|?(%d*)|?(.*)$')
  return {
    state = state == 'h' and 'held' or state == 'c' and 'confirmed' or 'restored',
    epoch = epoch,
    reservation_id = reservation_id,
    buyer = buyer,
    quantity = quantity,
    reserved_at_ms = reserved_at_ms,
    tries = tries ~= '' and tries or '0',
    verdict = verdict,
  }
end

-- Without a table, because a batch writes a hundred new ones.
local function write_new(state, epoch, reservation_id, buyer, quantity, reserved_at_ms)
  return string.sub(state, 1, 1) .. '|' .. epoch .. '|' .. reservation_id .. '|' .. buyer
    .. '|' .. quantity .. '|' .. reserved_at_ms
end

local function write_record(hold)
  local text = write_new(
    hold.state, hold.epoch, hold.reservation_id, hold.buyer, hold.quantity, hold.reserved_at_ms)
  if hold.verdict ~= '' then
    return text .. '|' .. hold.tries .. '|' .. hold.verdict
  end
  return hold.tries ~= '0' and text .. '|' .. hold.tries or text
end

-- A hold's key ends in its request id, which is a UUID.
local function request_id_of(hold_key)
  return string.sub(hold_key, -36)
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
  local text = redis.call('INFO', 'replication')
  -- The plain search first: a pattern is tried at each of some hundred letters.
  local _, before = string.find(text, 'master_replid:', 1, true)
  return before and string.match(text, '^%x+', before + 1) or 'hidden'
end

-- Numbers are printed whole: Lua would write 1e+14 from a hundred thousand milliards on.
local function whole(number)
  return string.format('%.0f', number)
end

-- A settled record outlives its sale by the retention, so that late repeats still find it.
local function kept_until(closes_at_ms, now, retention_ms)
  return whole(math.max(now, tonumber(closes_at_ms or 0)) + tonumber(retention_ms))
end
