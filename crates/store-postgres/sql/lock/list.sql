-- Lists all locks.
SELECT name, locked_by, timezone('utc', locked_at) AS locked_at, timezone('utc', lock_until) AS lock_until, fencing_token
FROM {schema}.shedlock ORDER BY name
