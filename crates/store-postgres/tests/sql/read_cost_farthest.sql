-- Returns the last request of a line.
SELECT id, workspace_id FROM leasehold.workflow_execution_queue WHERE due ORDER BY rank DESC, created_at DESC, id DESC LIMIT 1
