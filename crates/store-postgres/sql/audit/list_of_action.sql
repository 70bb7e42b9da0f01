-- Lists entries of action $3 before $1, newest first.
SELECT {audit/columns} FROM {schema}.audit_entry
WHERE action = $3 AND id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) ORDER BY id DESC LIMIT $2
