-- Lists the idle databases, which the next tests reuse.
CREATE TABLE IF NOT EXISTS idle_database (name text PRIMARY KEY, template text NOT NULL);
