-- Deletes the events of a request.
DELETE FROM request_event WHERE request_id = ?1
