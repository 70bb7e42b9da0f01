-- Lists FAILED requests of a workspace that were never redriven and can run again, after request ?5, oldest first.
SELECT q.id, q.bytes
FROM workflow_execution_queue q INDEXED BY request_to_redrive
WHERE q.workspace_id = ?1 AND q.status = 'FAILED' AND q.redriven = 0 AND q.id > ?5
    AND (?2 IS NULL OR q.failure_reason = ?2)
    AND (?4 IS NULL OR q.definition_id = ?4)
    AND EXISTS (SELECT 1 FROM workflow_definition d
        WHERE d.id = q.definition_id AND d.workspace_id = q.workspace_id AND d.deleted_at IS NULL)
ORDER BY q.id LIMIT ?3
