-- Lists requests that finished before ?1 (COMPLETED) or ?2 (FAILED), oldest first.
SELECT id, finished_at FROM (
    SELECT id, finished_at FROM workflow_execution_queue INDEXED BY request_to_prune
    WHERE status = 'COMPLETED' AND finished_at < ?1 ORDER BY finished_at LIMIT ?3)
UNION ALL
SELECT id, finished_at FROM (
    SELECT id, finished_at FROM workflow_execution_queue INDEXED BY request_to_prune
    WHERE status = 'FAILED' AND finished_at < ?2 ORDER BY finished_at LIMIT ?3)
ORDER BY finished_at LIMIT ?3
