-- Marks a workspace as deleted.
UPDATE leasehold.workspace SET deleted_at = now() WHERE id = $1
