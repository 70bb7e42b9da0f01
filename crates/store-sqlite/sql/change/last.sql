-- Reads the id of the newest event, even if that event was pruned.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'request_event'), 0)
