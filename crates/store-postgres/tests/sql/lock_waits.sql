-- Counts the sessions that wait for a lock in this database.
SELECT count(*) AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
