-- Returns the recorded engine.
SELECT kind, namespace, namespace_id, cluster_id, recorded_at, certain_from FROM {schema}.installation_engine WHERE id = 1
