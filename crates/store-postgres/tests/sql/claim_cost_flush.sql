-- Makes this connection's statistics visible when the statement has ended.
SELECT pg_stat_force_next_flush()
