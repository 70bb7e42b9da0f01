-- Who holds the keys $2 in a workspace, and whether with the definition and params asked.
SELECT q.idempotency_key, q.id, q.definition_id = a.definition_id AND q.params = a.params AS same
FROM unnest($2::text[], $3::uuid[], $4::jsonb[]) AS a (key, definition_id, params)
JOIN workflow_execution_queue q ON q.workspace_id = $1 AND q.idempotency_key = a.key
