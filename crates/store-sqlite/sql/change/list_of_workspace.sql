-- Lists the events of a workspace after a cursor and up to an id, in commit order.
SELECT id, request_id, workspace_id, from_status, to_status, at, by_whom, reason
FROM request_event WHERE id > ?1 AND id <= ?4 AND workspace_id = ?3 ORDER BY id LIMIT ?2
