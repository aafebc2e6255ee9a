INSERT INTO dead_letters
    (letter_id, reservation_id, request_id, item_id, buyer_id, reason, error, source, body,
     first_died_at, last_died_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)
-- The first story is kept; only the count and the time of the last death change.
ON CONFLICT (letter_id) DO UPDATE
SET attempts = dead_letters.attempts + 1,
    last_died_at = excluded.last_died_at
