-- Lists entries before $1, newest first.
SELECT {audit/columns} FROM {schema}.audit_entry
WHERE id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) ORDER BY id DESC LIMIT $2
