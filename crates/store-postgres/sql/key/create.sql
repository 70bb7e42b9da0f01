-- Creates a key. A key of a workspace is created only if the workspace is not deleted; the lock keeps it so until the commit.
WITH owner AS MATERIALIZED (
    SELECT id FROM {schema}.workspace WHERE id = $5 AND deleted_at IS NULL FOR SHARE
)
INSERT INTO {schema}.api_key (id, name, kind, workspace_id, queues, access, payloads, hash, created_at, expires_at)
SELECT $2, $3, $4, $5, $6, $7, $8, $9, clock.now, clock.now + $10::bigint::double precision * interval '1 microsecond'
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) clock
WHERE $5::uuid IS NULL OR EXISTS (SELECT 1 FROM owner)
RETURNING {key/columns}
