-- Deletes those of the keys $3 whose window has passed, skipping locked rows. Runs in its own transaction before the one that takes keys.
WITH passed AS MATERIALIZED (
    SELECT k.queue_id, k.key FROM unnest($2::integer[], $3::text[]) AS g (queue_id, key)
    CROSS JOIN LATERAL (
        SELECT k.* FROM {schema}.job_key k
        WHERE k.queue_id = g.queue_id AND k.key = g.key AND k.holds_until <= coalesce($1::timestamptz, clock_timestamp())
        LIMIT 1
    ) k
), free AS MATERIALIZED (
    SELECT k.queue_id, k.key FROM {schema}.job_key k
    WHERE (k.queue_id, k.key) IN (SELECT p.queue_id, p.key FROM passed p) FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.job_key k USING free f
WHERE k.queue_id = f.queue_id AND k.key = f.key AND k.holds_until <= coalesce($1::timestamptz, clock_timestamp())
