-- Changes a published version.
UPDATE leasehold.workflow_definition_version SET body = '{}' WHERE workspace_id = $1
