-- Resets the crashes of the request of an execution, because its input was computed.
UPDATE workflow_execution_queue SET crashes = NULL, crashes_alone = NULL, crashed_process = NULL
WHERE id = (SELECT request_id FROM workflow_execution WHERE id = ?1)
