-- A letter has a life: it is parked, replayed or discarded, and may die again.
ALTER TABLE dead_letters
    -- What its bytes are: a reservation to decide, a compensation, or nothing that can be read.
    ADD COLUMN kind           text NOT NULL DEFAULT 'unreadable'
        CHECK (kind IN ('reservation', 'compensation', 'unreadable')),
    -- Whose it is, when that can be read.
    ADD COLUMN environment_id uuid,
    -- The error without what differs from letter to letter, to count the same trouble as one.
    ADD COLUMN fingerprint    text NOT NULL DEFAULT '',
    -- Of the latest death, as they were.
    ADD COLUMN headers        jsonb NOT NULL DEFAULT '{}',
    -- The broker's name for the latest death: the same one delivered twice counts once.
    ADD COLUMN message_id     text,
    -- The bytes as they came, once somebody has edited them.
    ADD COLUMN original       bytea,
    -- When it was replayed or discarded.
    ADD COLUMN settled_at     timestamptz,
    -- Which run of a command took it last, when, and until when it has it for itself.
    ADD COLUMN run_id         uuid,
    ADD COLUMN claimed_at     timestamptz,
    ADD COLUMN claimed_until  timestamptz,
    -- Set before a discard does anything, so that a killed one is found and finished.
    ADD COLUMN discard_reason text CHECK (discard_reason ~ '^[a-z0-9_]{1,64}$');

UPDATE dead_letters
SET kind = CASE WHEN letter_id = reservation_id THEN 'reservation'
                WHEN reservation_id IS NOT NULL THEN 'compensation'
                ELSE 'unreadable' END,
    environment_id = CASE WHEN reservation_id IS NOT NULL
                          THEN (convert_from(body, 'UTF8')::jsonb ->> 'environment')::uuid END,
    fingerprint = left(regexp_replace(error, '[0-9]+', '#', 'g'), 200);

ALTER TABLE dead_letters
    DROP CONSTRAINT dead_letters_state_check,
    ADD CONSTRAINT dead_letters_state_check
        CHECK (state IN ('parked', 'replaying', 'replayed', 'discarded')),
    ADD CONSTRAINT dead_letters_settled_when_over
        CHECK ((state IN ('replayed', 'discarded')) = (settled_at IS NOT NULL));

-- The newest first, page by page; and what retention and the operators' filters ask for.
CREATE INDEX dead_letters_last_died ON dead_letters (last_died_at, letter_id);
CREATE INDEX dead_letters_request ON dead_letters (request_id);
CREATE INDEX dead_letters_item ON dead_letters (item_id, last_died_at);
CREATE INDEX dead_letters_settled ON dead_letters (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX dead_letters_run ON dead_letters (run_id) WHERE run_id IS NOT NULL;
