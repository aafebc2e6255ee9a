SELECT items.*,
       greatest(decided_until, 'epoch') AS decided_until_or_epoch,
       greatest(decided_at, 'epoch') AS decided_at_or_epoch,
       closes_at <= now() - make_interval(secs => $2) AS is_over
FROM items
WHERE left_redis_at IS NULL
  AND (
      epoch > 0
      -- Due: its sale is open, or soon will be.
      OR (opens_at <= now() + make_interval(secs => $1) AND closes_at > now())
  )
