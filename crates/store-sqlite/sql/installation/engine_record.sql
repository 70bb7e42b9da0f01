-- Records the engine (?2 kind, ?3 namespace, ?4 its id, ?5 cluster id) if there is none, if it has the same executions as the recorded one, or if no
-- execution is RUNNING. ?6: how many microseconds after a replacement an execution may still be the replaced engine's.
INSERT INTO installation_engine (id, kind, namespace, namespace_id, cluster_id, recorded_at, certain_from)
VALUES (1, ?2, ?3, ?4, ?5, ?1, ?1)
ON CONFLICT (id) DO UPDATE
SET kind = excluded.kind, namespace = excluded.namespace, namespace_id = excluded.namespace_id, cluster_id = excluded.cluster_id,
    recorded_at = iif(kind = excluded.kind AND namespace_id = excluded.namespace_id, recorded_at, excluded.recorded_at),
    certain_from = iif(kind = excluded.kind AND namespace_id = excluded.namespace_id, certain_from, excluded.recorded_at + ?6)
WHERE (kind = excluded.kind AND namespace_id = excluded.namespace_id)
    OR NOT EXISTS (SELECT 1 FROM workflow_execution INDEXED BY execution_running WHERE status = 'RUNNING' AND workspace_id > x'')
