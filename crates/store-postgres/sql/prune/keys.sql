-- Clears idempotency keys whose window has passed.
WITH passed AS (
    SELECT id FROM workflow_execution_queue
    WHERE idempotency_key IS NOT NULL AND dedupe_until <= coalesce($1::timestamptz, statement_timestamp())
    ORDER BY dedupe_until LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE workflow_execution_queue q SET idempotency_key = NULL, dedupe_until = NULL
FROM passed WHERE q.id = passed.id
