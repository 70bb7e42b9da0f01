-- Simulates rows from a cluster with far more transactions, without the sequence.
UPDATE leasehold.request_event SET xid = '900000000000';
UPDATE leasehold.workspace_turn SET written_by = '900000000000';
UPDATE leasehold.request_fold SET cluster = 1, position = '900000000000:900000000001:900000000000';
SELECT setval('leasehold.admission_number', 1)
