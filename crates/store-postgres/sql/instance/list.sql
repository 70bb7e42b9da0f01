-- Lists the instances, by id.
SELECT id, version, dispatches, listens, started_at, seen_at FROM {schema}.instance ORDER BY id COLLATE "C" LIMIT 1000
