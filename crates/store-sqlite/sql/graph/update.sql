-- Updates the state of a graph.
UPDATE execution_graph SET state = ?2, ended = ?3, error = ?4, finished_at = ?5 WHERE execution_id = ?1
