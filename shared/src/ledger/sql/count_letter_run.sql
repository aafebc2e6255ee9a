WITH
-- Letters that this run took last, and whether the ledger has decided their requests since.
taken AS (
    SELECT l.state = 'parked' AS died,
           o.request_id IS NOT NULL AS decided,
           -- What was decided before, and whatever follows from a compensation, is no news.
           o.decided_at < l.claimed_at OR l.kind = 'compensation' AS known,
           o.state = 'confirmed' AS confirmed
    FROM dead_letters l
    LEFT JOIN orders o ON o.request_id = l.request_id
    WHERE l.run_id = $1
)
SELECT count(*),
       count(*) FILTER (WHERE died),
       count(*) FILTER (WHERE NOT died AND decided AND known),
       count(*) FILTER (WHERE NOT died AND decided AND NOT known AND confirmed),
       count(*) FILTER (WHERE NOT died AND decided AND NOT known AND NOT confirmed),
       count(*) FILTER (WHERE NOT died AND NOT decided)
FROM taken
