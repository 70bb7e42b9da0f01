-- Grants another role SELECT on the applied functions.
GRANT SELECT ON leasehold.leasehold_function TO pg_read_all_stats
