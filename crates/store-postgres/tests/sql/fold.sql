-- Folds the events that committed since the last fold.
SELECT leasehold.leasehold_fold()
