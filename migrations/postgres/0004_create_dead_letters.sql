-- Messages that nobody could handle. A parked reservation keeps its stock until somebody decides.
CREATE TABLE dead_letters (
    -- The reservation's id; for bytes that cannot be read, a UUID made of their hash. The same letter
    -- twice is one row.
    letter_id      uuid PRIMARY KEY,
    reservation_id uuid,
    request_id     uuid,
    item_id        text COLLATE "C",
    buyer_id       text COLLATE "C",
    reason         text NOT NULL,
    error          text NOT NULL,
    source         text NOT NULL,
    -- Exactly as it came.
    body           bytea NOT NULL,
    attempts       bigint NOT NULL DEFAULT 1 CHECK (attempts >= 1),
    first_died_at  timestamptz NOT NULL,
    last_died_at   timestamptz NOT NULL,
    state          text NOT NULL DEFAULT 'parked' CHECK (state IN ('parked'))
);

CREATE INDEX dead_letters_reservation ON dead_letters (reservation_id);
