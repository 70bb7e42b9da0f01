-- Makes a version vanish.
DELETE FROM workflow_definition_version WHERE id = ?1
