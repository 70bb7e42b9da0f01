-- Inserts the state of an execution's graph when it starts.
INSERT INTO execution_graph (execution_id, state, deadline, started_at) VALUES (?1, ?2, ?3, ?4)
