-- Whether a definition can run: neither it nor its workspace is deleted.
SELECT EXISTS (
    SELECT 1 FROM workflow_definition d JOIN workspace w ON w.id = d.workspace_id
    WHERE d.id = ?2 AND d.workspace_id = ?1 AND d.deleted_at IS NULL AND w.deleted_at IS NULL)
