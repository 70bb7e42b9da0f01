-- Reads the quotas of a workspace, and what it uses of them, as maintained by triggers.
SELECT w.max_pending, w.max_open_bytes, max(0, t.pending) AS pending, max(0, t.open_bytes) AS open_bytes
FROM workspace w JOIN workspace_turn t ON t.workspace_id = w.id WHERE w.id = ?1
