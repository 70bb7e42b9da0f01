-- Deletes a version.
DELETE FROM leasehold.workflow_definition_version WHERE id = $1
