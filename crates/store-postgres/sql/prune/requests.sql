-- Deletes finished requests with their executions. Returns how many, and where the next call begins.
SELECT p.pruned, p.completed_to, p.failed_to, p.more FROM {schema}.leasehold_prune_requests($1, $2, $3, $4, $5) p
