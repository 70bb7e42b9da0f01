-- Lists the instances, by id.
SELECT id, version, dispatches, listens, started_at, seen_at FROM instance ORDER BY id LIMIT 1000
