-- Lists the idle databases, which the next tests reuse. One process at a time: concurrent creations of one table fail.
DO $$ BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('idle_database', 0));
    CREATE TABLE IF NOT EXISTS idle_database (name text PRIMARY KEY, template text NOT NULL);
END $$;
