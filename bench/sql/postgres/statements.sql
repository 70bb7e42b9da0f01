-- Reads the number of client statements in this database and the buffers they touched.
SELECT coalesce(sum(calls), 0)::double precision,
    coalesce(sum(shared_blks_hit + shared_blks_read), 0)::double precision
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'
