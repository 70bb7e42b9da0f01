-- Records the engine ($2 kind, $3 namespace, $4 its id, $5 cluster id) if there is none, if it has the same executions as the recorded one, or if no
-- execution is RUNNING. $6: how many microseconds after a replacement an execution may still be the replaced engine's.
INSERT INTO {schema}.installation_engine AS e (kind, namespace, namespace_id, cluster_id, recorded_at, certain_from)
SELECT $2, $3, $4, $5, given.now, given.now FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) given
ON CONFLICT (id) DO UPDATE
SET kind = excluded.kind, namespace = excluded.namespace, namespace_id = excluded.namespace_id, cluster_id = excluded.cluster_id,
    recorded_at = CASE WHEN (e.kind, e.namespace_id) = (excluded.kind, excluded.namespace_id) THEN e.recorded_at ELSE excluded.recorded_at END,
    certain_from = CASE WHEN (e.kind, e.namespace_id) = (excluded.kind, excluded.namespace_id) THEN e.certain_from
        ELSE excluded.recorded_at + $6::bigint::double precision * interval '1 microsecond' END
WHERE (e.kind, e.namespace_id) = (excluded.kind, excluded.namespace_id)
    OR NOT EXISTS (SELECT FROM {schema}.workflow_execution WHERE status = 'RUNNING')
