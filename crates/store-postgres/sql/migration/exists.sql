-- Whether anything was ever applied here.
SELECT to_regclass('leasehold_migration') IS NOT NULL AS present
