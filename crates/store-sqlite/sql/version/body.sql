-- What a version runs.
SELECT body FROM workflow_definition_version WHERE id = ?1
