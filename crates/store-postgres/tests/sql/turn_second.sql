-- Inserts a second turn row for a workspace.
INSERT INTO leasehold.workspace_turn (workspace_id, concurrency_limit, paused, turn) VALUES ($1, 100, false, 1000000)
