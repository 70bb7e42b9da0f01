-- Makes a restored database idle.
INSERT INTO idle_database (name, template) VALUES ($1, $2);
