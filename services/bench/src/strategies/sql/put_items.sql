INSERT INTO items (item_id, total, available)
SELECT item_id, units, units FROM unnest($1::text[], $2::bigint[]) AS put (item_id, units)
