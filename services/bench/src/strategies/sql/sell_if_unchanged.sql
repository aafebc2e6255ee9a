-- Nothing happens when somebody has changed the item since its version was read.
WITH taken AS (
    UPDATE items SET available = available - $4, version = version + 1
    WHERE item_id = $2 AND version = $5
    RETURNING item_id
)
INSERT INTO orders (request_id, item_id, buyer_id, quantity)
SELECT $1, item_id, $3, $4 FROM taken
