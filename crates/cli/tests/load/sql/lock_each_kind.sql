-- Locks one row of every kind: of workspace $1, of its requests $2, of the page of leases $3, of the queue $4 and of a named lock.
SELECT (SELECT count(*) FROM (SELECT 1 FROM workflow_execution_queue WHERE id = ($2::text[])[1]::uuid FOR UPDATE) l) AS request,
    (SELECT count(*) FROM (SELECT 1 FROM workflow_execution WHERE request_id = ($2::text[])[2]::uuid FOR UPDATE) l) AS execution,
    (SELECT count(*) FROM (SELECT 1 FROM workspace WHERE id = $1::text::uuid FOR UPDATE) l) AS workspace,
    (SELECT count(*) FROM (SELECT 1 FROM workspace_turn WHERE workspace_id = $1::text::uuid FOR UPDATE) l) AS slots,
    (SELECT count(*) FROM (
        SELECT 1 FROM execution_graph WHERE execution_id = (
            SELECT e.id FROM workflow_execution e WHERE e.request_id = ($2::text[])[3]::uuid) FOR UPDATE) l) AS graph,
    (SELECT count(*) FROM (
        SELECT 1 FROM execution_node WHERE execution_id = (
            SELECT e.id FROM workflow_execution e WHERE e.request_id = ($2::text[])[4]::uuid) FOR UPDATE) l) AS node,
    (SELECT count(*) FROM (
        SELECT 1 FROM job WHERE execution_id = (
            SELECT e.id FROM workflow_execution e WHERE e.request_id = ($2::text[])[5]::uuid) FOR UPDATE) l) AS job,
    (SELECT count(*) FROM (SELECT 1 FROM job_lease WHERE token = $3 FOR UPDATE) l) AS page,
    (SELECT count(*) FROM (SELECT 1 FROM queue WHERE name = $4 FOR UPDATE) l) AS queue,
    (SELECT count(*) FROM (SELECT 1 FROM shedlock WHERE name = 'another' FOR UPDATE) l) AS named_lock
