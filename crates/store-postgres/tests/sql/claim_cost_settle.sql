-- Folds and analyzes the inserted rows, as in a running system.
ANALYZE;
SELECT leasehold_fold();
ANALYZE;
