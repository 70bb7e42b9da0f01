-- Deletes instances without a heartbeat since ?2, except ?1.
DELETE FROM instance WHERE seen_at < ?2 AND id <> ?1
