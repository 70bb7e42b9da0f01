-- Drops a database even if a test left connections open.
DROP DATABASE IF EXISTS {name} WITH (FORCE);
