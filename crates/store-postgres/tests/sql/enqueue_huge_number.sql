-- Params with a number that no double holds.
SELECT leasehold_enqueue(workspace_id => $1, definition_id => $2, params => '{"a": [1e400]}') AS id
