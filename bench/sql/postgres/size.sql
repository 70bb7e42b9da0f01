-- Reads the row versions that became dead so far, those dead now, and the bytes of tables and of indexes.
SELECT coalesce(sum(s.n_tup_upd + s.n_tup_del), 0)::double precision,
    coalesce(sum(s.n_dead_tup), 0)::double precision,
    coalesce(sum(pg_table_size(s.relid)), 0)::double precision,
    coalesce(sum(pg_indexes_size(s.relid)), 0)::double precision
FROM pg_stat_user_tables s
