-- Lists claims whose lease has expired, longest expired first.
SELECT id FROM workflow_execution_queue INDEXED BY request_lease WHERE lease_expires_at <= ?1 ORDER BY lease_expires_at LIMIT ?2
