-- Records that the engine acknowledged the cancel requests ($2, $3, $4). A request that was cancelled with force meanwhile, or
-- whose row is locked, stays open.
WITH acknowledged AS (
    SELECT q.id FROM unnest($2::uuid[], $3::uuid[], $4::boolean[]) AS w (id, execution_id, force)
    JOIN {schema}.workflow_execution_queue q ON q.id = w.id
    WHERE q.execution_id = w.execution_id AND q.cancel_force = w.force AND q.cancel_untold IS NOT NULL
    ORDER BY q.id FOR UPDATE OF q SKIP LOCKED
)
UPDATE {schema}.workflow_execution_queue q SET cancel_told_at = coalesce($1::timestamptz, statement_timestamp())
FROM acknowledged a WHERE q.id = a.id
