-- Makes at most $1 ready workspaces claimable whose turn rows were last written in another cluster: by a transaction with a number that this one has not
-- reached. Skips rows that another transaction has locked. Returns how many were found and how many were written.
WITH found AS MATERIALIZED (
    SELECT count(*) AS rows FROM (
        SELECT 1 FROM {schema}.workspace_turn WHERE ready AND written_by >= pg_snapshot_xmax(pg_current_snapshot()) LIMIT $1
    ) f
), free AS MATERIALIZED (
    SELECT ctid AS tid FROM {schema}.workspace_turn
    WHERE ready AND written_by >= pg_snapshot_xmax(pg_current_snapshot()) AND (SELECT rows FROM found) > 0
    ORDER BY turn, workspace_id LIMIT $1
    FOR UPDATE SKIP LOCKED
), adopted AS (
    UPDATE {schema}.workspace_turn t SET written_by = pg_current_xact_id() FROM free WHERE t.ctid = free.tid
    RETURNING t.workspace_id
)
SELECT (SELECT rows FROM found) AS found, (SELECT count(*) FROM adopted) AS adopted
