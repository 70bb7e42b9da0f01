-- Returns who holds the keys $3 in a workspace, by position in the array, and whether definition and params match; not those whose window has passed.
SELECT a.nth, q.id, q.definition_id = a.definition_id AND q.params = a.params AS same
FROM unnest($3::text[], $4::uuid[], $5::jsonb[]) WITH ORDINALITY AS a (key, definition_id, params, nth)
JOIN {schema}.workflow_execution_queue q ON q.workspace_id = $2 AND q.idempotency_key = a.key
WHERE q.dedupe_until IS NULL OR q.dedupe_until > coalesce($1::timestamptz, statement_timestamp())
UNION ALL
SELECT a.nth, k.request_id,
    k.definition_id = a.definition_id AND k.params_hash = sha256(convert_to(a.params::text, 'UTF8'))
FROM unnest($3::text[], $4::uuid[], $5::jsonb[]) WITH ORDINALITY AS a (key, definition_id, params, nth)
JOIN {schema}.kept_key k ON k.workspace_id = $2 AND k.key = a.key AND k.dedupe_until > coalesce($1::timestamptz, statement_timestamp())
