-- Whether an administrator key exists that is not revoked.
SELECT EXISTS (SELECT 1 FROM api_key INDEXED BY api_key_admin WHERE kind = 'admin' AND revoked_at IS NULL)
