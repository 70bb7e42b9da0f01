-- Inserts many rows.
COPY plain (queue_id, kind, payload) FROM STDIN (FORMAT binary)
