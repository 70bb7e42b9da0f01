-- Returns the redrive of $1 that has not ended.
SELECT id FROM {schema}.workflow_execution_queue WHERE live_redrive_of = $1
