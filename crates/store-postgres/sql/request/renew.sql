-- Extends the leases that $2 still holds. Skips locked rows; the caller tells them from lost leases.
WITH held AS (
    SELECT q.id FROM unnest($3::uuid[], $4::bigint[]) AS c (id, token)
    JOIN {schema}.workflow_execution_queue q ON q.id = c.id
    WHERE q.claim_token = c.token AND q.claimed_by = $2 AND q.status = 'CLAIMED'
    ORDER BY q.id FOR UPDATE OF q SKIP LOCKED
)
UPDATE {schema}.workflow_execution_queue q
SET lease_expires_at = coalesce($1::timestamptz, clock_timestamp()) + $5::bigint::double precision * interval '1 microsecond'
FROM held WHERE q.id = held.id
RETURNING q.id
