-- Says whether a template has been built; it gets its name only when it is complete.
SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1);
