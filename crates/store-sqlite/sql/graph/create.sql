-- Writes down that an execution's graph was started.
INSERT INTO execution_graph (execution_id, state, deadline, started_at) VALUES (?1, ?2, ?3, ?4)
