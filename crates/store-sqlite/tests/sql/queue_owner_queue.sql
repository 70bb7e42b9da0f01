-- Inserts a queue as it was before queues had owners.
INSERT INTO queue (name, lease_us, max_attempts, backoff_base_us, backoff_factor, backoff_max_us, backoff_jitter, created_at)
VALUES (?1, 30000000, 25, 1000000, 2, 300000000, 0.2, 1)
