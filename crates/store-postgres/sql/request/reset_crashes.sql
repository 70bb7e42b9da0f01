-- Resets the crashes of the request of execution $1, because its input was computed.
UPDATE {schema}.workflow_execution_queue SET crashes = NULL, crashes_alone = NULL, crashed_process = NULL
WHERE id = (SELECT request_id FROM {schema}.workflow_execution WHERE id = $1)
