-- Deletes the first event of a request that is left.
DELETE FROM leasehold.request_event WHERE request_id = $1
    AND id = (SELECT min(id) FROM leasehold.request_event WHERE request_id = $1)
