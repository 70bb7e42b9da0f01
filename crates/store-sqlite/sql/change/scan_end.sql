-- Reads the id of the last event that a scan of ?2 events after a cursor reads; none if the scan reaches the end.
SELECT id FROM request_event WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2 - 1
