-- Returns the buffers of all tables and indexes that this session touched, hit or read, including triggers. Exact within a transaction: the
-- session reports its statistics, and forgets them, between transactions.
SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::bigint AS touched
FROM pg_class WHERE oid >= 16384 AND relkind IN ('r', 'i', 't')
