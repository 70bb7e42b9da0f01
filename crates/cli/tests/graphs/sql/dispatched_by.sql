-- Counts the requests that the instances whose names contain $1 have dispatched.
SELECT count(*) AS requests FROM request_event WHERE to_status = 'DISPATCHED' AND by_whom LIKE '%' || $1 || '%'
