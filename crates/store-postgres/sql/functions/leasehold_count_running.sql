-- Counts the RUNNING executions of a workspace, using the count shortcuts of its workspace_turn row.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_count_running(workspace uuid, oldest bigint, stragglers bigint[]) RETURNS bigint
LANGUAGE sql STABLE
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
    SELECT (
        SELECT count(*) FROM {schema}.workflow_execution
        WHERE workspace_id = workspace AND status = 'RUNNING' AND admission >= oldest
    ) + (
        -- LATERAL, one by one: as a condition of the query above it would scan all executions that ever ran.
        SELECT count(*) FROM unnest(stragglers) AS s (admission) CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.workflow_execution e
            WHERE e.workspace_id = workspace AND e.status = 'RUNNING' AND e.admission = s.admission
            LIMIT 1
        ) e
    )
$$
