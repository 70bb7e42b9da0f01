-- Records that a started node was abandoned because its graph ended.
UPDATE execution_node SET attempts = ?3, finished_at = ?4 WHERE execution_id = ?1 AND node = ?2
