-- Returns every transition of a request.
SELECT request_id, workspace_id, from_status, to_status, at, by_whom, reason FROM {schema}.request_event WHERE request_id = $2 AND workspace_id = $1 ORDER BY id
