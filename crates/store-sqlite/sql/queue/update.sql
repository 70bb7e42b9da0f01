-- Updates the settings of a queue.
UPDATE queue
SET max_running = ?2, paused = ?3, keep_completed = ?4, lease_us = ?5, max_attempts = ?6, backoff_base_us = ?7,
    backoff_factor = ?8, backoff_max_us = ?9, backoff_jitter = ?10, timeout_us = ?11, group_limit = ?12
WHERE id = ?1
