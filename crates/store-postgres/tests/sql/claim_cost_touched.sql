-- Returns the buffers of all tables and indexes touched so far, hit or read, including triggers.
SELECT coalesce(sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)
    + coalesce(toast_blks_hit + toast_blks_read + tidx_blks_hit + tidx_blks_read, 0)), 0)::bigint AS touched
FROM pg_statio_user_tables
