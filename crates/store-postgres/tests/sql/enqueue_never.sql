-- A request for a time that only PostgreSQL knows.
SELECT leasehold_enqueue(workspace_id => $1, definition_id => $2, run_at => 'infinity') AS id
