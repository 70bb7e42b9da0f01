-- Lists requests that finished before ?1 (COMPLETED) or ?2 (FAILED), oldest first, and whether they have a key with a window.
SELECT id, finished_at, keeps_key FROM (
    SELECT id, finished_at, idempotency_key IS NOT NULL AND dedupe_until IS NOT NULL AS keeps_key
    FROM workflow_execution_queue INDEXED BY request_to_prune
    WHERE status = 'COMPLETED' AND finished_at < ?1 ORDER BY finished_at LIMIT ?3)
UNION ALL
SELECT id, finished_at, keeps_key FROM (
    SELECT id, finished_at, idempotency_key IS NOT NULL AND dedupe_until IS NOT NULL AS keeps_key
    FROM workflow_execution_queue INDEXED BY request_to_prune
    WHERE status = 'FAILED' AND finished_at < ?2 ORDER BY finished_at LIMIT ?3)
ORDER BY finished_at LIMIT ?3
