-- Writes the event that request $1 of workspace $2 failed.
INSERT INTO leasehold.request_event (request_id, workspace_id, from_status, to_status, at, by_whom)
VALUES ($1, $2, 'PENDING', 'FAILED', now(), 'test')
