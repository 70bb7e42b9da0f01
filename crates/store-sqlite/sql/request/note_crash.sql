-- Notes the crash of process ?2 on the open request of an execution, with the error ?4. ?3: it computed no other input. A crash that
-- is noted already changes nothing.
UPDATE workflow_execution_queue
SET crashes = CASE WHEN crashed_process IS ?2 THEN crashes ELSE min(coalesce(crashes, 0) + 1, 32767) END,
    crashes_alone = CASE WHEN crashed_process IS ?2 THEN crashes_alone
        WHEN ?3 THEN min(coalesce(crashes_alone, 0) + 1, 32767) ELSE 0 END,
    crashed_process = ?2,
    last_error = ?4
WHERE id = (SELECT request_id FROM workflow_execution WHERE id = ?1 AND status = 'RUNNING')
    AND execution_id = ?1 AND finished_at IS NULL
RETURNING id, workspace_id, definition_id, version_id, execution_id, status, priority, params, trace_context, crashes, crashes_alone
