-- Lists entries by key $3, also of action $4, before $1, newest first.
SELECT {audit/columns} FROM {schema}.audit_entry
WHERE key_id = $3 AND ($4::text IS NULL OR action = $4) AND id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) ORDER BY id DESC LIMIT $2
