-- Returns how many events and finished requests there are from before the move, and a digest of the places and writers of their rows.
SELECT count(*) AS rows, sum(hashtextextended(concat(place, ' ', writer), 0))::text AS places
FROM (
    SELECT ctid AS place, xmin AS writer FROM leasehold.request_event WHERE id < 1::bigint << 40
    UNION ALL
    SELECT ctid, xmin FROM leasehold.workflow_execution_queue WHERE status = 'COMPLETED'
) r
