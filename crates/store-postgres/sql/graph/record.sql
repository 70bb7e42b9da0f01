-- Updates the states of the graphs $2 and the ended nodes ($6, $7). Inserts nodes that failed before they got a job.
WITH graph AS (
    UPDATE {schema}.execution_graph g
    SET state = s.state, ended = s.ended, error = s.error, finished_at = CASE WHEN s.ended IS NOT NULL THEN $1::timestamptz END
    FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) AS s (execution_id, state, ended, error)
    WHERE g.execution_id = ANY ($2) AND g.execution_id = s.execution_id
)
INSERT INTO {schema}.execution_node (execution_id, node, attempts, output, error, started_at, finished_at)
SELECT e.execution_id, e.node, e.attempts, e.output, e.error, $1, $1
FROM unnest($6::uuid[], $7::smallint[], $8::integer[], $9::json[], $10::text[])
    AS e (execution_id, node, attempts, output, error)
ON CONFLICT (execution_id, node) DO UPDATE
SET attempts = excluded.attempts, output = excluded.output, error = excluded.error, finished_at = excluded.finished_at
