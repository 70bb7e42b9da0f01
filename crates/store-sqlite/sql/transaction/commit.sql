-- Commits a group.
COMMIT
