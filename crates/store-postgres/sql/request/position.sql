-- Counts the due requests of a workspace that a claim takes before this one, up to $4; no row if the request is not due. Also counts due
-- requests that are not promoted yet, among the $5 that the next claim promotes.
SELECT least($4, (
        SELECT count(*) FROM (
            -- The bound is outside: inside, the scan would still read all rows of the same rank.
            SELECT q.rank, q.created_at, q.id FROM {schema}.workflow_execution_queue q
            WHERE q.workspace_id = $2 AND q.due AND q.execution_id IS NULL
            ORDER BY q.rank, q.created_at, q.id LIMIT $4
        ) line
        WHERE (line.rank, line.created_at, line.id) < (own.rank, own.created_at, own.id)
    ) + (
        SELECT count(*) FROM (
            SELECT q.workspace_id, q.execution_id, q.rank, q.created_at, q.id FROM {schema}.workflow_execution_queue q
            WHERE NOT q.due AND q.run_at <= clock.now ORDER BY q.run_at LIMIT $5
        ) unpromoted
        WHERE unpromoted.workspace_id = $2 AND unpromoted.execution_id IS NULL
            AND (unpromoted.rank, unpromoted.created_at, unpromoted.id) < (own.rank, own.created_at, own.id)
    )) AS position
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) clock
JOIN {schema}.workflow_execution_queue own ON own.id = $3 AND own.workspace_id = $2 AND own.execution_id IS NULL
    AND own.due IS NOT NULL AND (own.due OR own.run_at <= clock.now)
