-- Lists the keys of workspace $4 after $2, by id.
SELECT {key/columns} FROM {schema}.api_key
WHERE workspace_id = $4 AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT $3
