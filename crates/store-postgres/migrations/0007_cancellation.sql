-- Wishes to cancel what runs: whether it is ended without being asked, and whether the engine was told.

-- cancel_untold: when the wish was made, for as long as it is the engine's to carry out and the engine was not told. It is
-- null for all others, so that their steps rewrite no index.
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
