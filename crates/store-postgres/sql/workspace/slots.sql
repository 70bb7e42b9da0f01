-- Returns the limit of a workspace and its number of RUNNING executions.
SELECT t.concurrency_limit, {schema}.leasehold_count_running(t.workspace_id, t.oldest_admission, t.stragglers) AS in_use
FROM {schema}.workspace_turn t WHERE t.workspace_id = $1 ORDER BY t.turn DESC LIMIT 1
