-- Fails unless the server process began at $1 and this database is $2.
SELECT {schema}.leasehold_begin($1, $2)
