-- Whether a definition is of the workspace ?1, deleted or not.
SELECT EXISTS (SELECT 1 FROM workflow_definition WHERE id = ?2 AND workspace_id = ?1)
