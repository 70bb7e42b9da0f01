-- Whether a valid administrator key with all rights other than $2 exists that does not expire before $3; NULL: that does not expire.
SELECT EXISTS (
    SELECT 1 FROM {schema}.api_key
    WHERE kind = 'admin' AND revoked_at IS NULL AND access = 'full' AND payloads = 'shown' AND id <> $2
        AND (expires_at IS NULL OR (expires_at >= $3 AND expires_at > coalesce($1::timestamptz, statement_timestamp())))
) AS found
