-- The limit of a workspace and how many executions hold a slot.
SELECT t.concurrency_limit, leasehold_running(t.workspace_id, t.oldest_admission, t.stragglers) AS in_use
FROM workspace_turn t WHERE t.workspace_id = $1 ORDER BY t.turn DESC LIMIT 1
