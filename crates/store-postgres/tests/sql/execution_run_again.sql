-- Sets an ended execution to RUNNING.
UPDATE leasehold.workflow_execution
SET status = 'RUNNING', finished_at = NULL, admission = nextval('leasehold.admission_number'::regclass) WHERE id = $1
