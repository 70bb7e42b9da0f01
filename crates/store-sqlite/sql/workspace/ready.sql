-- Reads the workspace whose turn is next: its line is not empty, and it has a free slot or is deleted (its requests are then rejected).
SELECT workspace_id, deleted
FROM workspace_turn INDEXED BY workspace_turn_ready WHERE ready = 1 ORDER BY turn LIMIT 1
