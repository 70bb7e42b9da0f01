-- Lists the most expensive statements of this database: first line, calls, milliseconds, milliseconds of the fastest
-- call, buffers, WAL bytes.
SELECT split_part(query, E'\n', 1), sum(calls)::double precision, sum(total_exec_time)::double precision,
    min(min_exec_time)::double precision,
    sum(shared_blks_hit + shared_blks_read)::double precision, sum(wal_bytes)::double precision
FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'
GROUP BY 1 ORDER BY 3 DESC LIMIT 15
