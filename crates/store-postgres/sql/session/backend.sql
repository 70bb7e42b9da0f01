-- The server process that runs this statement.
SELECT pg_catalog.pg_backend_pid() AS pid
