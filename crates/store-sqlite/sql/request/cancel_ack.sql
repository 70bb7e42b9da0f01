-- Records that the engine acknowledged a cancel request, unless it was changed to a forced one meanwhile.
UPDATE workflow_execution_queue SET cancel_told_at = ?4
WHERE id = ?1 AND execution_id = ?2 AND cancel_force = ?3 AND status = 'DISPATCHED' AND cancel_requested_at IS NOT NULL
    AND cancel_told_at IS NULL
