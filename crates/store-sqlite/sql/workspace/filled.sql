-- The limit of a workspace that has no slot left while more waits in its line.
SELECT concurrency_limit FROM workspace_turn
WHERE workspace_id = ?1 AND has_room = 0 AND waiting > 0 AND deleted = 0
