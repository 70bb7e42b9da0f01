-- Reads the id of the newest event, even if that event was pruned, and the id of the epoch; 0 if the file is not migrated by this program.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'request_event'), 0) AS last,
    coalesce((SELECT id FROM epoch ORDER BY number DESC LIMIT 1), 0) AS epoch
