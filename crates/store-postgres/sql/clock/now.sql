-- Returns the database's time, or $1 if given.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
