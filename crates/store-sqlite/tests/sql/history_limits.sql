-- Every change of a limit.
SELECT after_event, workspace_id, concurrency_limit, paused FROM test_limit ORDER BY id
