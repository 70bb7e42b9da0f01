-- Promotes due requests into their lines and folds committed events. Returns when the next request is due, also in microseconds from now.
SELECT {schema}.leasehold_promote_due(clock.now, $2) AS due, {schema}.leasehold_fold() AS folded, next.run_at AS next_due,
    (extract(epoch FROM next.run_at - clock.now) * 1000000::numeric)::bigint AS next_due_in
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) clock
LEFT JOIN LATERAL (
    SELECT q.run_at FROM {schema}.workflow_execution_queue q WHERE NOT q.due AND q.run_at > clock.now ORDER BY q.run_at LIMIT 1
) next ON true
