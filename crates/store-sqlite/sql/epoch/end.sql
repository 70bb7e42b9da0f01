-- Returns the last event of the epoch ?1: where the next one began, or the newest event ?2; no row if the epoch is not known.
SELECT coalesce((SELECT n.start_position FROM epoch n WHERE n.number > e.number ORDER BY n.number LIMIT 1), ?2) AS last
FROM epoch e WHERE e.id = ?1
