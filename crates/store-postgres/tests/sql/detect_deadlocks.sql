-- Makes new connections to this database detect deadlocks before a wait for a lock times out.
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''20ms''', current_database()); END $$
