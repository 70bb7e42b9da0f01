-- Turns synchronous_commit off by default.
ALTER DATABASE {database} SET synchronous_commit = off
