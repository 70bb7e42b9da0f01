-- Changes the limit of a workspace.
UPDATE workspace SET limit_override = ?2 WHERE id = ?1
