-- Lists all transitions of a request, in order.
SELECT request_id, workspace_id, from_status, to_status, at, by_whom, reason
FROM request_event INDEXED BY request_event_request WHERE request_id = ?2 AND workspace_id = ?1 ORDER BY id
