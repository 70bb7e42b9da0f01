-- Reads the limit that the schema gives a workspace named after its plan.
SELECT t.concurrency_limit FROM workspace_turn t JOIN workspace w ON w.id = t.workspace_id WHERE w.name = ?1
