-- Whether a valid administrator key with all rights exists.
SELECT EXISTS (
    SELECT 1 FROM {schema}.api_key
    WHERE kind = 'admin' AND revoked_at IS NULL AND access = 'full' AND payloads = 'shown'
        AND (expires_at IS NULL OR expires_at > coalesce($1::timestamptz, statement_timestamp()))
) AS found
