-- A page of all jobs, newest first; a queue that is NULL lets all pass.
SELECT id FROM job NOT INDEXED WHERE id < ?1 AND (?2 IS NULL OR queue_id = ?2) ORDER BY id DESC LIMIT ?3
