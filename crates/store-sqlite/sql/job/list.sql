-- Lists a page of all jobs, newest first.
SELECT id FROM job NOT INDEXED WHERE id < ?1 ORDER BY id DESC LIMIT ?2
