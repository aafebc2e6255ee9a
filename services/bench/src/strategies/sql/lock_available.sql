SELECT available, version, EXISTS (SELECT FROM orders WHERE request_id = $2) AS is_known
FROM items
WHERE item_id = $1
FOR UPDATE OF items
