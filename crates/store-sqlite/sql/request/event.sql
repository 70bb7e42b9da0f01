-- Appends a transition to the event log.
INSERT INTO request_event (request_id, workspace_id, from_status, to_status, at, by_whom, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
