-- Returns the migration that a program must have been built with to use the schema.
SELECT max(compatible_from) FROM leasehold_migration
