ALTER TABLE items
    -- When a decision last changed what is left. Not indexed: selling never touches an index.
    ADD COLUMN decided_at    timestamptz NOT NULL DEFAULT '-infinity',
    -- When the item left Redis after its sale; null while Redis may have it.
    ADD COLUMN left_redis_at timestamptz,
    -- The pause that an operator has ordered, and why.
    ADD COLUMN pause_id      uuid,
    ADD COLUMN pause_reason  text,
    ADD CONSTRAINT items_pause_has_a_reason CHECK ((pause_id IS NULL) = (pause_reason IS NULL));

-- Stock that was added after the sale was put. The id makes a repeated command add once.
CREATE TABLE additions (
    addition_id uuid PRIMARY KEY,
    item_id     text COLLATE "C" NOT NULL REFERENCES items,
    units       bigint NOT NULL CHECK (units BETWEEN 1 AND 1000000000),
    added_at    timestamptz NOT NULL DEFAULT now()
);

-- What comparisons of Redis with the ledger have found, and what was done about it.
CREATE TABLE reconciliations (
    finding_id uuid PRIMARY KEY,
    item_id    text COLLATE "C" NOT NULL REFERENCES items,
    found_at   timestamptz NOT NULL DEFAULT now(),
    kind       text NOT NULL CHECK (kind IN ('stock', 'buyer_total', 'ledger_behind')),
    buyer_id   text COLLATE "C",
    -- Units that Redis had too few (positive) or too many (negative).
    difference bigint NOT NULL,
    -- Units that were added to Redis; 0 when it was only looked at.
    corrected  bigint NOT NULL,
    CONSTRAINT reconciliations_totals_have_a_buyer CHECK ((kind = 'buyer_total') = (buyer_id IS NOT NULL))
);

CREATE INDEX reconciliations_item ON reconciliations (item_id, found_at);
