-- Inserts one row.
INSERT INTO plain (queue_id, kind, payload) VALUES ($1, $2, $3::text::json)
