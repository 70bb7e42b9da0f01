-- Enqueues params with a number outside the range of a double.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, params => '{"a": [1e400]}') AS id
