WITH imported AS (
    INSERT INTO dead_letters
        (letter_id, kind, environment_id, reservation_id, request_id, item_id, buyer_id, reason,
         error, fingerprint, source, headers, body, original, attempts, first_died_at,
         last_died_at, state, settled_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::jsonb, $13, $14, $15, $16, $17,
            $18, $19)
    ON CONFLICT DO NOTHING
    RETURNING letter_id
)
INSERT INTO letter_acts (letter_id, who, what, outcome)
SELECT letter_id, $20, 'import', 'done' FROM imported
