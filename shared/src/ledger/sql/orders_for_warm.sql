-- One page of an item's orders, buyer by buyer, which is the order of the index.
SELECT orders.*,
       coalesce((
           SELECT sum(quantity) FROM orders AS of_buyer
           WHERE of_buyer.item_id = orders.item_id
             AND of_buyer.buyer_id = orders.buyer_id
             AND of_buyer.state = 'confirmed'
       ), 0)::bigint AS buyer_total
FROM orders
WHERE item_id = $1
  AND (buyer_id, request_id) > ($2, $3)
ORDER BY buyer_id, request_id
LIMIT $4
