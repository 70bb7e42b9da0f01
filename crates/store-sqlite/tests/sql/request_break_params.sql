-- Makes the params of a request unreadable.
UPDATE workflow_execution_queue SET params = CAST(x'ff' AS TEXT) WHERE id = ?1
