-- Counts the requests of all workspaces in each status.
SELECT status, count(*) AS requests FROM workflow_execution_queue GROUP BY status
