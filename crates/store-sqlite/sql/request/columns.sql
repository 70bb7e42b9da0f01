-- The columns of a request.
id, status, run_at, idempotency_key, execution_id, attempt_count, dispatch_failures, failure_reason, last_error,
    redrive_of, cancel_requested_at, claimed_by, lease_expires_at, created_at, claimed_at, dispatched_at, finished_at,
    {request/given}
