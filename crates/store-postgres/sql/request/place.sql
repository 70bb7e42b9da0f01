-- How many of a workspace's due requests a claim takes before this one, $4 at most; no row if it is not in line itself. One whose
-- time has come counts although nobody has put it into the line yet; of such, those that the next claim puts there are looked at.
SELECT least($4, (
        SELECT count(*) FROM (
            -- Compared outside: a bound in here would not end the walk before the rank does.
            SELECT q.rank, q.created_at, q.id FROM workflow_execution_queue q
            WHERE q.workspace_id = $2 AND q.due AND q.execution_id IS NULL
            ORDER BY q.rank, q.created_at, q.id LIMIT $4
        ) line
        WHERE (line.rank, line.created_at, line.id) < (own.rank, own.created_at, own.id)
    ) + (
        SELECT count(*) FROM (
            SELECT q.workspace_id, q.execution_id, q.rank, q.created_at, q.id FROM workflow_execution_queue q
            WHERE NOT q.due AND q.run_at <= clock.now ORDER BY q.run_at LIMIT $5
        ) ripe
        WHERE ripe.workspace_id = $2 AND ripe.execution_id IS NULL
            AND (ripe.rank, ripe.created_at, ripe.id) < (own.rank, own.created_at, own.id)
    )) AS place
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) clock
JOIN workflow_execution_queue own ON own.id = $3 AND own.workspace_id = $2 AND own.execution_id IS NULL
    AND own.due IS NOT NULL AND (own.due OR own.run_at <= clock.now)
