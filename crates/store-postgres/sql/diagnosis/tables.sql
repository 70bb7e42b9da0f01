-- Returns the tables with the most writes: their size, their dead rows, and the state of autovacuum. The partitions of the event log are one table.
SELECT t.name, sum(t.bytes)::bigint AS bytes, sum(t.rows)::bigint AS rows, sum(t.dead)::bigint AS dead,
    max(t.last_autovacuum) AS last_autovacuum, bool_and(t.autovacuum) AS autovacuum
FROM (
    SELECT regexp_replace(c.relname::text, '^request_event_[0-9]+$', 'request_event') AS name,
        pg_total_relation_size(c.oid) AS bytes, coalesce(s.n_live_tup, 0) AS rows, coalesce(s.n_dead_tup, 0) AS dead, s.last_autovacuum,
        NOT EXISTS (
            SELECT 1 FROM pg_options_to_table(c.reloptions) o
            WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean) AS autovacuum
    FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
    WHERE c.relkind = 'r' AND c.relnamespace = '{schema}'::regnamespace
) t
WHERE t.name IN (
    'workflow_execution_queue', 'workflow_execution', 'request_event', 'request_fold', 'workspace_turn', 'workspace_delta',
    'shedlock', 'instance', 'job', 'job_waiting', 'job_lease', 'job_end', 'job_cursor', 'execution_graph', 'execution_node')
GROUP BY t.name ORDER BY t.name
