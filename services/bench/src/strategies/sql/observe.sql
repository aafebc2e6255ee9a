SELECT coalesce(sum(total - available), 0)::bigint AS sold,
       (
           SELECT count(*) FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'
       ) AS waiting
FROM items
WHERE item_id = ANY($1)
