-- Lists entries of workspace $3, also by key $4 and of action $5, before $1, newest first.
SELECT {audit/columns} FROM {schema}.audit_entry
WHERE workspace_id = $3 AND ($4::uuid IS NULL OR key_id = $4) AND ($5::text IS NULL OR action = $5)
    AND id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
ORDER BY id DESC LIMIT $2
