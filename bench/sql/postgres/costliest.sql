-- The statements that took most of the time in this database: their first line, calls, milliseconds, those of
-- the quickest call, buffers, bytes of log.
SELECT split_part(query, E'\n', 1), sum(calls)::double precision, sum(total_exec_time)::double precision,
    min(min_exec_time)::double precision,
    sum(shared_blks_hit + shared_blks_read)::double precision, sum(wal_bytes)::double precision
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'
GROUP BY 1 ORDER BY 3 DESC LIMIT 15
