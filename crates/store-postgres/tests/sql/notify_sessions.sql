-- Counts the connections of the application $1.
SELECT count(*) AS sessions FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1
