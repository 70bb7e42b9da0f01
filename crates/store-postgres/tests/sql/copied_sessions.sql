-- Returns how many sessions the database $1 has.
SELECT count(*) AS sessions FROM pg_stat_activity WHERE datname = $1
