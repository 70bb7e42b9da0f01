-- Prunes every completed request, as the pruner does.
SELECT pruned FROM leasehold.leasehold_prune_requests('infinity', NULL, NULL, NULL, 500)
