-- Forgets the instances that were not seen since ?2, all but ?1.
DELETE FROM instance WHERE seen_at < ?2 AND id <> ?1
