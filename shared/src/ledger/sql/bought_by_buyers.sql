-- What the buyers of a batch have confirmed already.
SELECT item_id, buyer_id, sum(quantity)::bigint
FROM orders
WHERE state = 'confirmed'
  AND (item_id, buyer_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
GROUP BY item_id, buyer_id
