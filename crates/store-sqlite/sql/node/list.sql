-- Lists the started nodes of an execution; outputs beyond ?2 bytes in total are omitted.
SELECT node, job_id, attempts, CASE WHEN bytes <= ?2 THEN output END AS output, output IS NOT NULL AND bytes > ?2 AS omitted,
    error, started_at, finished_at
FROM (
    SELECT *, sum(coalesce(octet_length(output), 0)) OVER (ORDER BY node) AS bytes FROM execution_node WHERE execution_id = ?1
)
