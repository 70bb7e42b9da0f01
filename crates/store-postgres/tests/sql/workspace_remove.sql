-- Takes a workspace away.
DELETE FROM workspace WHERE id = $1
