WITH
-- All orders of a batch at once, whatever its size.
written AS (
    INSERT INTO orders
        (request_id, reservation_id, item_id, buyer_id, quantity, state, reason, epoch, reserved_at)
    SELECT *
    FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[],
        $6::text[], $7::text[], $8::bigint[], $9::timestamptz[]
    )
)
-- The conditional update: anything but one row for each item means that somebody broke the row lock.
UPDATE items
SET available = items.available - decided.units,
    decided_at = now(),
    decided_until = greatest(items.decided_until, decided.reserved_at),
    -- Counts changes of what is on sale, not of the mark.
    version = items.version + CASE WHEN decided.units > 0 THEN 1 ELSE 0 END
FROM unnest($10::text[], $11::bigint[], $12::timestamptz[]) AS decided (item_id, units, reserved_at)
WHERE items.item_id = decided.item_id
  AND items.available >= decided.units
