-- The same shape for every rival: one row an item, one row an order under its request id. Lean on
-- purpose: no index but the keys. Room on the page of an item, so that an update of its row stays on
-- that page and touches no index.
CREATE SCHEMA rivals;

CREATE TABLE rivals.items (
    item_id   text COLLATE "C" PRIMARY KEY,
    total     bigint NOT NULL,
    available bigint NOT NULL CHECK (available >= 0),
    version   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

CREATE TABLE rivals.orders (
    request_id uuid PRIMARY KEY,
    item_id    text COLLATE "C" NOT NULL,
    buyer_id   text COLLATE "C" NOT NULL,
    quantity   bigint NOT NULL,
    placed_at  timestamptz NOT NULL DEFAULT now()
);
