-- Reads the owner of a queue by name, and whether it is shared with all workspaces.
SELECT q.id, q.shared_with_all, w.name AS owner FROM queue q LEFT JOIN workspace w ON w.id = q.owner_id WHERE q.name = ?1
