-- Lists all changes of limits.
SELECT after_event, workspace_id, concurrency_limit, paused FROM test_limit ORDER BY id
