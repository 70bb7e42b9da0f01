-- Deletes finished requests with their executions and events.
SELECT leasehold_prune($1, $2, $3) AS pruned
