-- Adds a restored database to the idle databases.
INSERT INTO idle_database (name, template) VALUES ($1, $2);
