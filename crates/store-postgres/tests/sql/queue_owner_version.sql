-- Inserts the next version of a definition, without looking at its queues.
INSERT INTO workflow_definition_version (id, workspace_id, definition_id, number, body, created_at)
SELECT $1, $2, $3, count(*) + 1, $4, clock_timestamp() FROM workflow_definition_version WHERE definition_id = $3
