-- Creates a table with two rows.
CREATE TABLE pair AS SELECT id FROM generate_series(1, 2) AS one (id)
