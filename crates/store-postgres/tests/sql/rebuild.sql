-- The repair.
SELECT leasehold_rebuild()
