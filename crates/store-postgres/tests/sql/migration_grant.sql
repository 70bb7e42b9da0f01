-- Grants another role SELECT on the applied migrations.
GRANT SELECT ON leasehold.leasehold_migration TO pg_read_all_stats
