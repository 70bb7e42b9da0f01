-- Takes a version away.
DELETE FROM workflow_definition_version WHERE id = $1
