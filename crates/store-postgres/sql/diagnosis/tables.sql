-- Returns the tables with the most writes: their size, their dead rows, and the state of autovacuum.
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes, coalesce(s.n_live_tup, 0) AS rows,
    coalesce(s.n_dead_tup, 0) AS dead, s.last_autovacuum,
    NOT EXISTS (
        SELECT 1 FROM pg_options_to_table(c.reloptions) o
        WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean) AS autovacuum
FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE c.relkind = 'r' AND c.relnamespace = '{schema}'::regnamespace AND c.relname IN (
    'workflow_execution_queue', 'workflow_execution', 'request_event', 'request_fold', 'workspace_turn', 'workspace_delta',
    'shedlock', 'instance', 'job', 'job_waiting', 'job_lease', 'job_end', 'job_cursor', 'execution_graph', 'execution_node')
ORDER BY c.relname
