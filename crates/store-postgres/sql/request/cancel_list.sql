-- Lists cancel requests that the engine has not acknowledged, oldest first.
SELECT id, workspace_id, execution_id, cancel_force FROM {schema}.workflow_execution_queue
WHERE cancel_untold IS NOT NULL ORDER BY cancel_untold, id LIMIT $1
