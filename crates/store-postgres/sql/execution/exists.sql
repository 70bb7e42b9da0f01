-- Returns which of the executions exist, and whether they have ended.
SELECT id, finished_at IS NOT NULL AS ended FROM workflow_execution WHERE id = ANY ($1)
