WITH
-- What each of the buyers has confirmed.
bought AS (
    SELECT buyer_id, sum(quantity)::bigint AS units
    FROM orders
    WHERE item_id = $1 AND buyer_id = ANY ($4) AND state = 'confirmed'
    GROUP BY buyer_id
)
-- One statement sees one instant.
SELECT total, available, limit_per_buyer IS NOT NULL AS is_limited,
       ARRAY(
           SELECT reservation_id FROM orders
           WHERE request_id = ANY ($2) AND reservation_id = ANY ($3) AND state = 'confirmed'
       ) AS confirmed_holds,
       ARRAY(SELECT buyer_id FROM bought ORDER BY buyer_id) AS buyers,
       ARRAY(SELECT units FROM bought ORDER BY buyer_id) AS units
FROM items
WHERE item_id = $1
