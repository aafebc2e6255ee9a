-- The conditional update: anything but one row for each item means that somebody broke the row lock.
UPDATE items
SET available = items.available - decided.units,
    decided_at = now(),
    decided_until = greatest(items.decided_until, decided.reserved_at),
    -- Counts changes of what is on sale, not of the mark.
    version = items.version + CASE WHEN decided.units > 0 THEN 1 ELSE 0 END
FROM unnest($1::text[], $2::bigint[], $3::timestamptz[]) AS decided (item_id, units, reserved_at)
WHERE items.item_id = decided.item_id
  AND items.available >= decided.units
