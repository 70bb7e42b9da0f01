-- Returns the executions of which the jobs $1 are nodes.
SELECT j.id, j.execution_id FROM {schema}.job j WHERE j.id = ANY ($1::bigint[]) AND j.execution_id IS NOT NULL
