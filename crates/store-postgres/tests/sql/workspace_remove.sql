-- Deletes the row of a workspace.
DELETE FROM workspace WHERE id = $1
