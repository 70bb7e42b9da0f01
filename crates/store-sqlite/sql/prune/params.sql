-- Reads the params of a request whose key is kept.
SELECT params FROM workflow_execution_queue WHERE id = ?1
