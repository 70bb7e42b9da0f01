-- Returns a key by id.
SELECT {key/columns} FROM {schema}.api_key WHERE id = $2
