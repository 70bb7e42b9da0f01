-- The time.
SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
