-- Returns whether a template exists. A template gets its name only once it is complete.
SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1);
