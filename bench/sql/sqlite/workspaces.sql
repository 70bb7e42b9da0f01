-- Lists all workspaces with their definition, by number.
SELECT w.id, d.id FROM workspace w JOIN workflow_definition d ON d.workspace_id = w.id
ORDER BY CAST(substr(w.name, length('workspace ') + 1) AS INTEGER)
