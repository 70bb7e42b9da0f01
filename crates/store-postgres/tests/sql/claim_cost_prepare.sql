-- Prepares the claim as the store does, under a name that EXPLAIN can use.
PREPARE claim (timestamptz, bigint, text, bigint, uuid[], text, text, bigint) AS {claim}
