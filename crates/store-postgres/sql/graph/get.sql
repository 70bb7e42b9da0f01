-- Returns the graph of an execution.
SELECT state, ended, error, started_at, finished_at FROM {schema}.execution_graph WHERE execution_id = $1
