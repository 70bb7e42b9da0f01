-- Reads the id and the owner of a queue by name, and whether it is shared with all workspaces.
SELECT id, owner_id, shared_with_all FROM queue WHERE name = ?1
