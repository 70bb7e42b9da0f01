-- Enqueues a request with a run_at that only PostgreSQL supports.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, run_at => 'infinity') AS id
