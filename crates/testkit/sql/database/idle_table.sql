-- Names the databases that wait for their next test.
CREATE TABLE IF NOT EXISTS idle_database (name text PRIMARY KEY, template text NOT NULL);
