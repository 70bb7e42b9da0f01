-- Lists all workspaces with their definition, by number.
SELECT w.id, d.id FROM leasehold.workspace w JOIN leasehold.workflow_definition d ON d.workspace_id = w.id
ORDER BY substr(w.name, length('workspace ') + 1)::integer
