-- One statement, one transaction, one round trip: the row lock is held no longer than it must be.
-- Of two at once under one request id, the second waits for the row and then fails on the order's
-- key, which undoes its update.
WITH known AS (
    SELECT FROM orders WHERE request_id = $1
), taken AS (
    UPDATE items SET available = available - $4, version = version + 1
    WHERE item_id = $2 AND available >= $4 AND NOT EXISTS (SELECT FROM known)
    RETURNING item_id
), placed AS (
    INSERT INTO orders (request_id, item_id, buyer_id, quantity)
    SELECT $1, item_id, $3, $4 FROM taken
)
SELECT EXISTS (SELECT FROM taken) AS is_taken, EXISTS (SELECT FROM known) AS is_known
