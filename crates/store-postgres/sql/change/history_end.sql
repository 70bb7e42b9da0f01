-- Returns the last event that a scan of $3 events after event $2 of request $1 reads; none if the scan reaches the end.
SELECT request_id, id FROM {schema}.request_event WHERE (request_id, id) > ($1, $2) ORDER BY request_id, id LIMIT 1 OFFSET $3::bigint - 1
