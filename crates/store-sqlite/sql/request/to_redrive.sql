-- Reads what a redrive needs of a request, and its open redrive.
SELECT q.status, q.definition_id,
    (SELECT r.id FROM workflow_execution_queue r WHERE r.live_redrive_of = q.id) AS live
FROM workflow_execution_queue q WHERE q.id = ?2 AND q.workspace_id = ?1
