-- Returns the lowest and the highest token of the claims of the requests $1; of all if it is empty.
SELECT min(claim_token) AS lowest, max(claim_token) AS highest FROM leasehold.workflow_execution_queue
WHERE id = ANY ($1::uuid[]) OR $1 = '{}'::uuid[]
