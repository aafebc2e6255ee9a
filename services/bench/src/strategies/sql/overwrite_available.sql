-- The mistake: what is left is written as it was read some time ago.
WITH placed AS (
    INSERT INTO orders (request_id, item_id, buyer_id, quantity)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING item_id
)
UPDATE items SET available = $5, version = version + 1
FROM placed
WHERE items.item_id = placed.item_id
