-- Makes this connection's own statistics visible as soon as this statement has ended.
SELECT pg_stat_force_next_flush()
