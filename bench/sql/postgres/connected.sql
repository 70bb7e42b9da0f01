-- How many connections of that name there are.
SELECT count(*) FROM pg_stat_activity WHERE application_name = $1
