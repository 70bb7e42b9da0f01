-- Returns every transition of a request that is not pruned, as far as its events are kept.
SELECT request_id, workspace_id, from_status, to_status, at, by_whom, reason FROM {schema}.request_event
WHERE request_id = $2 AND workspace_id = $1 AND EXISTS (SELECT FROM {schema}.workflow_execution_queue q WHERE q.id = $2)
ORDER BY id
