-- Whether the request ?2 of a workspace is FAILED, was never redriven and can run again.
SELECT EXISTS (
    SELECT 1 FROM workflow_execution_queue q
    JOIN workflow_definition d ON d.id = q.definition_id AND d.workspace_id = q.workspace_id
    WHERE q.id = ?2 AND q.workspace_id = ?1 AND q.status = 'FAILED' AND q.redriven = 0 AND d.deleted_at IS NULL
) AS is_redrivable
