-- Records that keys were used now. Skips locked rows, so that it waits for nothing and two instances cannot deadlock.
WITH free AS MATERIALIZED (
    SELECT id FROM {schema}.api_key WHERE id = ANY ($2) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {schema}.api_key SET last_used_at = greatest(last_used_at, coalesce($1::timestamptz, statement_timestamp()))
FROM free WHERE api_key.id = free.id
