-- Lists a page of all workspaces after ?1, deleted ones included, by id.
SELECT id FROM workspace WHERE id > ?1 ORDER BY id LIMIT ?2
