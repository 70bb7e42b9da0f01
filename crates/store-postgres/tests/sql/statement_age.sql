-- Counts the sessions whose statement has been waiting for a lock for longer than twice the limit of statements.
SELECT count(*) AS waiting FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '400 ms'
