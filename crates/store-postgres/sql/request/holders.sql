-- Returns the holders of the keys $3 in a workspace, whether definition and params match, and whether the window has passed.
SELECT q.idempotency_key, q.id, q.definition_id = a.definition_id AND q.params = a.params AS same,
    coalesce(q.dedupe_until <= coalesce($1::timestamptz, statement_timestamp()), false) AS is_expired
FROM unnest($3::text[], $4::uuid[], $5::jsonb[]) AS a (key, definition_id, params)
JOIN {schema}.workflow_execution_queue q ON q.workspace_id = $2 AND q.idempotency_key = a.key
UNION ALL
SELECT k.key, k.request_id,
    k.definition_id = a.definition_id AND k.params_hash = sha256(convert_to(a.params::text, 'UTF8')), false
FROM unnest($3::text[], $4::uuid[], $5::jsonb[]) AS a (key, definition_id, params)
JOIN {schema}.kept_key k ON k.workspace_id = $2 AND k.key = a.key AND k.dedupe_until > coalesce($1::timestamptz, statement_timestamp())
