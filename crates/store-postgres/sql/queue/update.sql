-- Updates the given settings of a queue and leaves the others.
UPDATE {schema}.queue SET
    max_running = CASE WHEN $2 THEN $3 ELSE max_running END,
    paused = coalesce($4, paused),
    keep_completed = coalesce($5, keep_completed),
    lease_us = coalesce($6, lease_us),
    max_attempts = coalesce($7, max_attempts),
    backoff_base_us = coalesce($8, backoff_base_us),
    backoff_max_us = coalesce($9, backoff_max_us),
    backoff_factor = coalesce($10, backoff_factor),
    backoff_jitter = coalesce($11, backoff_jitter),
    timeout_us = CASE WHEN $12 THEN $13 ELSE timeout_us END,
    group_limit = CASE WHEN $14 THEN $15 ELSE group_limit END
WHERE id = $1
RETURNING {schema}.leasehold_job_notify() AS notified, {queue/columns}
