-- Lists a page of all jobs, newest first; ?2 NULL: of all queues.
SELECT id FROM job NOT INDEXED WHERE id < ?1 AND (?2 IS NULL OR queue_id = ?2) ORDER BY id DESC LIMIT ?3
