-- Enqueues a request whose numbers have more digits than a double.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, params => '{"n": [12345678901234567890123, 0.12345678901234567890123, 9007199254740993]}') AS id
