-- Returns a key by id and locks its row.
SELECT {key/columns} FROM {schema}.api_key WHERE id = $2 FOR UPDATE
