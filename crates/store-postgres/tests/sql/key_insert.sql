-- Inserts a key with any values.
INSERT INTO leasehold.api_key (id, name, kind, workspace_id, queues, hash, created_at) VALUES ($1, 'by hand', $2, $3, $4, $5, now())
