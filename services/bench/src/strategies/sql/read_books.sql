SELECT items.item_id, items.total, items.available,
       coalesce(sold.units, 0)::bigint AS sold,
       coalesce(sold.orders, 0) AS orders
FROM items
LEFT JOIN (
    SELECT item_id, sum(quantity) AS units, count(*) AS orders FROM orders GROUP BY item_id
) AS sold USING (item_id)
ORDER BY items.item_id
