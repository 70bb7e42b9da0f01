-- Returns FAILED requests of workspace $1 that were never redriven and can run again, after request $6, oldest first: at most $4, and no more once
-- they have $5 bytes; optionally of one reason or definition. Locks none.
SELECT f.id
FROM (
    SELECT q.id, sum(q.bytes) OVER (ORDER BY q.id) - q.bytes AS before
    FROM (
        SELECT q.id, q.bytes FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = $1 AND q.id > $6 AND q.failure_reason IS NOT NULL AND NOT q.redriven
            AND ($2::text IS NULL OR q.failure_reason = $2)
            AND ($3::uuid IS NULL OR q.definition_id = $3)
            AND EXISTS (
                SELECT 1 FROM {schema}.workflow_definition d JOIN {schema}.workspace w ON w.id = d.workspace_id
                WHERE d.id = q.definition_id AND d.deleted_at IS NULL AND w.deleted_at IS NULL)
        ORDER BY q.id LIMIT $4
    ) q
) f
WHERE f.before < $5 ORDER BY f.id
