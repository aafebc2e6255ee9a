-- Collation "C": ids are ASCII, compare as bytes, and row locks are taken in the same order everywhere.
CREATE TABLE items (
    item_id         text COLLATE "C" PRIMARY KEY CHECK (item_id ~ '^[A-Za-z0-9._-]{1,64}$'),
    total           bigint NOT NULL CHECK (total BETWEEN 0 AND 1000000000),
    available       bigint NOT NULL CHECK (available >= 0),
    limit_per_buyer bigint CHECK (limit_per_buyer BETWEEN 1 AND 1000000000),
    opens_at        timestamptz NOT NULL,
    closes_at       timestamptz NOT NULL,
    -- Which warm-up built the item's Redis state; 0 before the first.
    epoch           bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    -- When the newest reservation that has been decided was reserved: tells a message that still
    -- waits in its queue from one that got lost.
    decided_until   timestamptz NOT NULL DEFAULT '-infinity',
    -- Counts changes of the terms and of what is left.
    version         bigint NOT NULL DEFAULT 1,
    -- When the terms of the sale last changed. Sold stock leaves it alone, so that selling never
    -- touches the index.
    changed_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT items_available_within_total CHECK (available <= total),
    CONSTRAINT items_opens_before_it_closes CHECK (opens_at < closes_at)
);

CREATE INDEX items_changed_at ON items (changed_at);
