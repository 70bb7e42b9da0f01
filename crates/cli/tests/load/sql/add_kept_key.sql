-- Writes the key of a pruned request, whose window has passed.
INSERT INTO kept_key (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
VALUES ('{workspace}', gen_random_uuid(), gen_random_uuid(), now() - interval '1 minute', 'locked', sha256(''))
ON CONFLICT DO NOTHING
