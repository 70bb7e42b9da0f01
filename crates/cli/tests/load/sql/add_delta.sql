-- Writes a change of a workspace's counts that changes nothing.
INSERT INTO workspace_delta (workspace_id) VALUES ('{workspace}')
