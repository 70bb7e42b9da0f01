-- Lists a page of a workspace's keys, by id.
SELECT {key/columns}
FROM api_key WHERE workspace_id = ?4 AND id > ?2 ORDER BY id LIMIT ?3
