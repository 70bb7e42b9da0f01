-- Brings due requests into line and folds what was committed; then when the next becomes due.
SELECT leasehold_ripen(clock.now, $2) AS due, leasehold_fold() AS folded,
    (SELECT q.run_at FROM workflow_execution_queue q WHERE NOT q.due AND q.run_at > clock.now ORDER BY q.run_at LIMIT 1)
        AS next_due
FROM (SELECT coalesce($1::timestamptz, statement_timestamp()) AS now) clock
