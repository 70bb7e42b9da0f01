-- Index for lists of a workspace's executions, last admitted first.

CREATE INDEX execution_list ON workflow_execution (workspace_id, admission);
