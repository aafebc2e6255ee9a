WITH
-- At one instant, so that a decision in between contradicts nothing.
bought AS (
    SELECT item_id, buyer_id, sum(quantity)::bigint AS units
    FROM orders
    WHERE item_id = ANY($1) AND state = 'confirmed'
    GROUP BY item_id, buyer_id
)
SELECT i.item_id,
       i.total,
       i.available,
       i.limit_per_buyer,
       coalesce(sum(bought.units), 0)::bigint,
       coalesce(max(bought.units), 0)::bigint
FROM items i
LEFT JOIN bought ON bought.item_id = i.item_id
WHERE i.item_id = ANY($1)
GROUP BY i.item_id
ORDER BY i.item_id
