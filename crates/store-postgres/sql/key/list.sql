-- Lists keys after $2, by id.
SELECT {key/columns} FROM {schema}.api_key
WHERE id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT $3
