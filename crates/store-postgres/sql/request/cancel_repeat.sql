-- Clears the engine's acknowledgement of the cancel requests of these requests ($1), so that they are sent again. Skips locked rows.
WITH acknowledged AS (
    SELECT q.id FROM {schema}.workflow_execution_queue q
    WHERE q.id = ANY ($1::uuid[]) AND q.status = 'DISPATCHED' AND q.cancel_told_at IS NOT NULL
    ORDER BY q.id FOR UPDATE OF q SKIP LOCKED
)
UPDATE {schema}.workflow_execution_queue q SET cancel_told_at = NULL
FROM acknowledged a WHERE q.id = a.id
