-- Cancel requests. cancel_force: terminate instead of cancel. cancel_told_at: when the engine acknowledged the request.

ALTER TABLE workflow_execution_queue ADD COLUMN cancel_force INTEGER NOT NULL DEFAULT 0
    CONSTRAINT request_cancel_force CHECK (cancel_force IN (0, 1));
ALTER TABLE workflow_execution_queue ADD COLUMN cancel_told_at INTEGER
    CONSTRAINT request_cancel CHECK (
        cancel_requested_at IS NOT NULL OR (cancel_force = 0 AND cancel_told_at IS NULL)
    );

CREATE INDEX request_cancel_untold ON workflow_execution_queue (status, cancel_requested_at, id)
    WHERE status = 'DISPATCHED' AND cancel_requested_at IS NOT NULL AND cancel_told_at IS NULL;
