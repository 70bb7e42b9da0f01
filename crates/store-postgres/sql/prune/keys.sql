-- Clears idempotency keys whose window has passed, and deletes the kept ones of pruned requests. Returns how many.
WITH passed AS (
    SELECT id FROM {schema}.workflow_execution_queue
    WHERE idempotency_key IS NOT NULL AND dedupe_until <= coalesce($1::timestamptz, statement_timestamp())
    ORDER BY dedupe_until LIMIT $2 FOR UPDATE SKIP LOCKED
), cleared AS (
    UPDATE {schema}.workflow_execution_queue q SET idempotency_key = NULL, dedupe_until = NULL
    FROM passed WHERE q.id = passed.id
    RETURNING q.id
), passed_kept AS (
    SELECT workspace_id, key FROM {schema}.kept_key
    WHERE dedupe_until <= coalesce($1::timestamptz, statement_timestamp())
    ORDER BY dedupe_until LIMIT $2 FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM {schema}.kept_key k USING passed_kept p WHERE k.workspace_id = p.workspace_id AND k.key = p.key
    RETURNING k.key
)
SELECT (SELECT count(*) FROM cleared) + (SELECT count(*) FROM deleted) AS keys
