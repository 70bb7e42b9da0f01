-- The newest event's place in the stream.
SELECT coalesce(max(id), 0) FROM request_event
