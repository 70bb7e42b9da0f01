-- A change by a client that names no isolation level.
UPDATE leasehold.workspace SET paused = paused
