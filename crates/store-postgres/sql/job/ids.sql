-- Returns the next $1 ids.
SELECT array_agg(nextval('{schema}.job_id')) AS ids FROM generate_series(1, $1::integer)
