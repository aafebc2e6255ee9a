WITH
-- Units are small and items have at most 10^9 of them, so sums fit a bigint.
of_buyers AS (
    SELECT count(*) FILTER (WHERE state = 'confirmed') AS confirmed,
           coalesce(sum(quantity) FILTER (WHERE state = 'confirmed'), 0)::bigint AS units,
           count(*) FILTER (WHERE state = 'rejected') AS rejected,
           count(*) FILTER (WHERE state = 'expired') AS expired
    FROM orders
    WHERE item_id = $1
    GROUP BY buyer_id
)
SELECT count(*),
       coalesce(sum(confirmed), 0)::bigint,
       coalesce(sum(units), 0)::bigint,
       coalesce(sum(rejected), 0)::bigint,
       coalesce(sum(expired), 0)::bigint,
       coalesce(max(units), 0)::bigint
FROM of_buyers
