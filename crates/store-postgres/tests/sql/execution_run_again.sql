-- Sets an ended execution to RUNNING.
UPDATE workflow_execution
SET status = 'RUNNING', finished_at = NULL, admission = nextval('admission_number'::regclass) WHERE id = $1
