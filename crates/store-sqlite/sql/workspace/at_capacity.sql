-- Reads the limit of a workspace that has no free slot while requests wait in its line.
SELECT concurrency_limit FROM workspace_turn
WHERE workspace_id = ?1 AND has_room = 0 AND waiting > 0 AND deleted = 0
