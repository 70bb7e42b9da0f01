-- Deletes finished requests with all that belongs to them.
SELECT leasehold_prune($1, $2, $3) AS pruned
