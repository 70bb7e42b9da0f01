-- Clears those of the keys $3 whose window has passed.
WITH passed AS (
    SELECT id FROM {schema}.workflow_execution_queue
    WHERE workspace_id = $2 AND idempotency_key = ANY ($3)
        AND dedupe_until <= coalesce($1::timestamptz, statement_timestamp())
    ORDER BY idempotency_key COLLATE "C" FOR UPDATE
)
UPDATE {schema}.workflow_execution_queue q SET idempotency_key = NULL, dedupe_until = NULL
FROM passed WHERE q.id = passed.id
