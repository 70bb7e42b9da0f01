-- Records that a queue has groups.
UPDATE queue SET has_groups = 1 WHERE id = ?1 AND has_groups = 0
