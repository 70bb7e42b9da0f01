-- Records the heartbeat of an instance; the first one sets started_at.
INSERT INTO instance (id, version, dispatches, listens, started_at, seen_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
ON CONFLICT (id) DO UPDATE
SET version = excluded.version, dispatches = excluded.dispatches, listens = excluded.listens, seen_at = excluded.seen_at
