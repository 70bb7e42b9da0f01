-- Deletes the row of a workspace.
DELETE FROM leasehold.workspace WHERE id = $1
