-- Whether another claim may find more: a kept execution, a ready workspace, or a due request.
SELECT EXISTS (SELECT 1 FROM workflow_execution_queue INDEXED BY request_kept
        WHERE due = 1 AND execution_id IS NOT NULL)
    OR EXISTS (SELECT 1 FROM workspace_turn INDEXED BY workspace_turn_ready WHERE ready = 1)
    OR EXISTS (SELECT 1 FROM workflow_execution_queue INDEXED BY request_not_due WHERE due = 0 AND run_at <= ?1)
