-- Folds the events that committed since the last fold.
SELECT leasehold_fold()
