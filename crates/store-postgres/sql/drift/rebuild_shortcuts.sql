-- Makes the turn row of workspace $1 count every RUNNING execution. Moves oldest_admission back behind the last straggler that is still
-- RUNNING.
UPDATE {schema}.workspace_turn t
SET held_at_most = greatest(t.held_at_most, cardinality(r.running)),
    oldest_admission = least(t.oldest_admission, coalesce((SELECT min(a) FROM unnest(r.running) a WHERE a > r.last), r.last + 1)),
    stragglers = ARRAY(SELECT a FROM unnest(r.running) a WHERE a <= r.last ORDER BY a),
    written_by = pg_current_xact_id()
FROM (
    SELECT t.ctid AS tid, r.running,
        coalesce((SELECT max(a) FROM unnest(r.running) a WHERE a = ANY (t.stragglers)), -1) AS last
    FROM (SELECT ctid, * FROM {schema}.workspace_turn WHERE workspace_id = $1 ORDER BY turn DESC LIMIT 1) t
    CROSS JOIN LATERAL (
        SELECT ARRAY(SELECT admission FROM {schema}.workflow_execution WHERE workspace_id = $1 AND status = 'RUNNING') AS running
    ) r
) r
WHERE t.ctid = r.tid
