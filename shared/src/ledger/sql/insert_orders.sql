-- All decisions of a batch in one statement, whatever its size.
INSERT INTO orders
    (request_id, reservation_id, item_id, buyer_id, quantity, state, reason, epoch, reserved_at)
SELECT *
FROM unnest(
    $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[],
    $6::text[], $7::text[], $8::bigint[], $9::timestamptz[]
)
