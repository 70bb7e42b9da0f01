-- Cancel requests for running executions: whether to terminate, and whether the engine acknowledged.

-- cancel_untold: the time of the cancel request while the execution is DISPATCHED and the engine has not acknowledged. NULL
-- otherwise, so that other updates write no index entry.
ALTER TABLE workflow_execution_queue
    ADD COLUMN cancel_force boolean NOT NULL DEFAULT false,
    ADD COLUMN cancel_told_at timestamptz,
    ADD COLUMN cancel_untold timestamptz GENERATED ALWAYS AS (
        CASE WHEN status = 'DISPATCHED' AND cancel_told_at IS NULL THEN cancel_requested_at END
    ) STORED,
    ADD CONSTRAINT request_cancel CHECK (
        cancel_requested_at IS NOT NULL OR (NOT cancel_force AND cancel_told_at IS NULL)
    );

CREATE INDEX request_cancel_untold ON workflow_execution_queue (cancel_untold, id) WHERE cancel_untold IS NOT NULL;
