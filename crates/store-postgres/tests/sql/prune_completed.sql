-- Prunes every completed request, as the pruner does.
SELECT leasehold_prune('infinity', NULL, 500) AS pruned
