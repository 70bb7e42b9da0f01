-- Drops a database, and terminates connections that a test left open.
DROP DATABASE IF EXISTS {name} WITH (FORCE);
