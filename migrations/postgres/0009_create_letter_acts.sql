-- What was done to letters: who, when, what, and how it ended. A row is written before its act
-- begins, so that an act that was cut short is seen.
CREATE TABLE letter_acts (
    act_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    letter_id uuid NOT NULL REFERENCES dead_letters ON UPDATE CASCADE ON DELETE CASCADE,
    run_id    uuid,
    who       text NOT NULL,
    what      text NOT NULL CHECK (what IN ('died', 'replay', 'discard', 'edit', 'import')),
    at        timestamptz NOT NULL DEFAULT now(),
    outcome   text NOT NULL DEFAULT 'begun',
    detail    text NOT NULL DEFAULT ''
);

CREATE INDEX letter_acts_letter ON letter_acts (letter_id, act_id);
