-- One row names this ledger; messages of any other environment are refused.
CREATE TABLE environment (
    only_row       boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    environment_id uuid NOT NULL
);
