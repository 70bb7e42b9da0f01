-- Cancels the statement that waits for a lock, as a timeout does.
SELECT count(pg_cancel_backend(pid)) AS cancelled
FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
