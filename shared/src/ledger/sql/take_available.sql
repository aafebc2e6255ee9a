-- The conditional update: anything but one row for each item means that somebody broke the row lock.
UPDATE items
SET available = items.available - sold.units, version = items.version + 1
FROM unnest($1::text[], $2::bigint[]) AS sold (item_id, units)
WHERE items.item_id = sold.item_id
  AND items.available >= sold.units
