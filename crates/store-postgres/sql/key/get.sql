-- Returns a key by id.
SELECT {key/columns} FROM api_key WHERE id = $2
