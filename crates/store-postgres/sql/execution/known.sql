-- Which of the executions exist.
SELECT id FROM workflow_execution WHERE id = ANY ($1)
