-- Returns how many deadlocks PostgreSQL detected in a database.
SELECT deadlocks FROM pg_stat_database WHERE datname = $1
