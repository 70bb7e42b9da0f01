-- Lists graphs whose deadline has passed, oldest deadline first.
SELECT execution_id FROM execution_graph INDEXED BY execution_graph_deadline
WHERE finished_at IS NULL AND deadline IS NOT NULL AND deadline <= ?1 ORDER BY deadline LIMIT ?2
