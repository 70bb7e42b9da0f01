-- Inserts a definition into a schema that has no catalog of definitions and versions yet.
INSERT INTO workflow_definition (id, workspace_id, name, created_at) VALUES ($1, $2, 'order', now())
