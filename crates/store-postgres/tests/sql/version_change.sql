-- Changes a published version.
UPDATE workflow_definition_version SET body = '{}' WHERE workspace_id = $1
