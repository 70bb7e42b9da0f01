-- Folds and analyzes the inserted rows, as in a running system.
-- ANALYZE also locks the catalogs that all databases of the server share, so it waits for other tests.
SET lock_timeout = 0;
ANALYZE;
SELECT leasehold.leasehold_fold();
ANALYZE;
