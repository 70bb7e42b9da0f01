-- Writes $1 events of other workspaces, each of a transaction of its own from number 1000000 on.
INSERT INTO leasehold.request_event (xid, request_id, workspace_id, from_status, to_status, at, by_whom)
SELECT (1000000 + n)::text::xid8, md5(n::text)::uuid, md5('workspace')::uuid, 'PENDING', 'FAILED', now(), 'test'
FROM generate_series(0, $1::bigint - 1) n
