-- The one Redis that may sell for this ledger, and under which namespace; null until it is bound.
-- store_seen_at is by the clock of this database alone.
ALTER TABLE environment
    ADD COLUMN namespace     text COLLATE "C" CHECK (namespace ~ '^[a-z0-9-]{1,32}$'),
    ADD COLUMN store_id      uuid,
    ADD COLUMN store_seen_at timestamptz,
    ADD CONSTRAINT environment_bound_at_once
        CHECK (num_nonnulls(namespace, store_id, store_seen_at) IN (0, 3));
