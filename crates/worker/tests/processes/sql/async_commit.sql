-- Turns synchronous_commit off for later connections.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());
END
$$
