INSERT INTO dead_letters AS kept
    (letter_id, kind, environment_id, reservation_id, request_id, item_id, buyer_id, reason, error,
     fingerprint, source, headers, message_id, body, first_died_at, last_died_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::jsonb, $13, $14, now(), now())
-- The bytes stay; the story is that of the latest death. Whatever it was before, it is parked now.
ON CONFLICT (letter_id) DO UPDATE
SET reason = excluded.reason,
    error = excluded.error,
    fingerprint = excluded.fingerprint,
    source = excluded.source,
    headers = excluded.headers,
    message_id = excluded.message_id,
    attempts = kept.attempts + 1,
    last_died_at = excluded.last_died_at,
    state = 'parked',
    settled_at = NULL,
    claimed_until = NULL,
    -- A discard that is under way goes on; one that is done does not begin again.
    discard_reason = CASE WHEN kept.state = 'discarded' THEN NULL ELSE kept.discard_reason END
-- The same death delivered twice is one death.
WHERE kept.message_id IS NULL OR kept.message_id IS DISTINCT FROM excluded.message_id
