-- Reads a key.
SELECT {key/columns} FROM api_key WHERE id = ?2
