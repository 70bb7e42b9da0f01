-- Lists a page of all keys, by id.
SELECT {key/columns}
FROM api_key WHERE id > ?2 ORDER BY id LIMIT ?3
