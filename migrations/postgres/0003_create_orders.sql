-- The ledger's word on a request. A row never changes its class.
CREATE TABLE orders (
    request_id     uuid PRIMARY KEY,
    reservation_id uuid NOT NULL,
    item_id        text COLLATE "C" NOT NULL REFERENCES items,
    buyer_id       text COLLATE "C" NOT NULL CHECK (buyer_id ~ '^[A-Za-z0-9._-]{1,64}$'),
    quantity       bigint NOT NULL CHECK (quantity BETWEEN 1 AND 1000000),
    state          text NOT NULL CHECK (state IN ('confirmed', 'rejected', 'expired')),
    reason         text CHECK (reason ~ '^[a-z0-9_]{1,64}$'),
    epoch          bigint NOT NULL,
    -- By the clock of Redis; unknown for a tombstone.
    reserved_at    timestamptz,
    decided_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT orders_only_failures_have_a_reason CHECK ((state = 'confirmed') = (reason IS NULL))
);

CREATE INDEX orders_item_buyer ON orders (item_id, buyer_id);
