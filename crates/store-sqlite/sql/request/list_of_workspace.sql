-- Lists a page of a workspace's requests, newest first; a NULL parameter filters nothing.
SELECT {request/columns}
FROM workflow_execution_queue INDEXED BY request_list
WHERE workspace_id = ?1
    AND id < ?5
    AND (?2 IS NULL OR status = ?2)
    AND (?3 IS NULL OR definition_id = ?3)
    AND (?4 IS NULL OR failure_reason = ?4)
ORDER BY id DESC LIMIT ?6
