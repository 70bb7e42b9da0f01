-- Inserts ?1 requests, numbered from ?2, spread over ?4 workspaces from number ?3 on, at ?5: due at ?6, after ?7 rejections.
WITH RECURSIVE number (r, w) AS (
    VALUES (?2, ?3 + ?2 % ?4) UNION ALL SELECT r + 1, ?3 + (r + 1) % ?4 FROM number WHERE r < ?2 + ?1 - 1
)
INSERT INTO workflow_execution_queue (id, workspace_id, definition_id, version_id, due, run_at, created_at, attempt_count,
    dispatch_failures, last_error, params)
SELECT unhex(printf('%012x70048000%012x', r, r)), unhex(printf('%012x70018000%012x', w, w)),
    unhex(printf('%012x70028000%012x', w, w)), unhex(printf('%012x70038000%012x', w, w)), ?6 <= ?5, ?6, ?5 + r, ?7, ?7,
    CASE WHEN ?7 > 0 THEN 'rejected by the engine' END, '{"order": 12345, "customer": "abcdefgh", "lines": [1, 2, 3]}'
FROM number
