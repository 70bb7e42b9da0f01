-- Returns how many deadlocks happened in this database.
SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()
