-- Deletes a version.
DELETE FROM workflow_definition_version WHERE id = $1
