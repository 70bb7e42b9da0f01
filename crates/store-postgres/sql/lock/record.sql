-- Returns whether a lock's row names this holder, and whether no other transaction has locked the row.
WITH free AS MATERIALIZED (
    SELECT 1 FROM {schema}.shedlock WHERE name = $1 FOR NO KEY UPDATE SKIP LOCKED
)
SELECT EXISTS (SELECT 1 FROM {schema}.shedlock s WHERE s.name = $1 AND s.locked_by = $2 AND s.fencing_token = $3) AS names_holder,
    EXISTS (SELECT 1 FROM free) AS is_free
