-- The newest event's place in the stream, also if that event is pruned.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'request_event'), 0)
