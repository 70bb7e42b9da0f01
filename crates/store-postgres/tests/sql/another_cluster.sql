-- Simulates rows from a cluster with far more transactions, without the sequence.
UPDATE request_event SET xid = '900000000000';
UPDATE workspace_turn SET written_by = '900000000000';
UPDATE request_fold SET cluster = 1, position = '900000000000:900000000001:900000000000';
SELECT setval('admission_number', 1)
