-- The caller has the row lock and has seen that enough is left.
WITH placed AS (
    INSERT INTO orders (request_id, item_id, buyer_id, quantity)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING item_id, quantity
)
UPDATE items SET available = items.available - placed.quantity, version = items.version + 1
FROM placed
WHERE items.item_id = placed.item_id
