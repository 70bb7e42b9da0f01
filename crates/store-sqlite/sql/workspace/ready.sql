-- The workspace whose turn it is: something waits in its line, and it has room or is to be told that it is deleted.
SELECT workspace_id, deleted
FROM workspace_turn INDEXED BY workspace_turn_ready WHERE ready = 1 ORDER BY turn LIMIT 1
