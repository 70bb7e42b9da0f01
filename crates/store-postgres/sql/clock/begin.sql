-- Returns the database's time, or $1 if given. The transaction waits for each lock at most $2 from now on.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now, set_config('lock_timeout', $2, true) AS lock_timeout
