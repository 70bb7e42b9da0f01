-- Returns the next $1 ids; none unless every line exists: the queue $2 with the name $4 and the priority $3.
SELECT array_agg(nextval('{schema}.job_id')) AS ids FROM generate_series(1, $1::integer)
WHERE NOT EXISTS (
    SELECT FROM unnest($2::integer[], $3::smallint[], $4::text[]) AS n (queue_id, priority, queue)
    WHERE NOT EXISTS (
        SELECT FROM {schema}.job_line l WHERE l.queue_id = n.queue_id AND l.priority = n.priority AND l.queue = n.queue))
