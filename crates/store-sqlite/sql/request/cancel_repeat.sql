-- Clears the engine's acknowledgement of the cancel requests of these requests (a JSON array, ?1), so that they are sent again.
UPDATE workflow_execution_queue SET cancel_told_at = NULL
WHERE id IN (SELECT unhex(value) FROM json_each(?1)) AND status = 'DISPATCHED' AND cancel_told_at IS NOT NULL
