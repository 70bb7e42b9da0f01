-- Makes an execution vanish.
DELETE FROM workflow_execution WHERE id = ?1
