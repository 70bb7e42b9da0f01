-- Marks a workspace as deleted.
UPDATE workspace
SET deleted_at = coalesce($1::timestamptz, statement_timestamp()),
    updated_at = coalesce($1::timestamptz, statement_timestamp())
WHERE id = $2 AND deleted_at IS NULL
RETURNING id, (SELECT leasehold_notify()) AS notified
