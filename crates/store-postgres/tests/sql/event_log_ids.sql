-- Lists the partitions of the events of a request.
SELECT id >> 40 AS partition FROM leasehold.request_event WHERE request_id = $1 ORDER BY id
