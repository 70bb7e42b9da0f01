-- Reads a job from the work_queue view.
SELECT queue, kind, status, priority, payload, run_at, attempts, claimed_by, lease_expires_at, created_at, finished_at,
    last_error, result
FROM work_queue WHERE id = ?1
