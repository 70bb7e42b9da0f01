-- Returns the bytes of the database.
SELECT pg_database_size(current_database())
