-- The highest fence under which work of several steps on the item has begun. Redis counts fences, and
-- may lose its count; it never starts again below this one.
ALTER TABLE items ADD COLUMN fence bigint NOT NULL DEFAULT 0 CHECK (fence >= 0);
