-- Into how many buckets an item's stock is divided in Redis; changes only together with the epoch.
ALTER TABLE items
    ADD COLUMN buckets      smallint NOT NULL DEFAULT 1 CHECK (buckets BETWEEN 1 AND 64),
    -- The most it has ever had: a warm-up tells those that an older layout has left in Redis.
    ADD COLUMN most_buckets smallint NOT NULL DEFAULT 1,
    ADD CONSTRAINT items_most_buckets_are_most CHECK (most_buckets BETWEEN buckets AND 64);
