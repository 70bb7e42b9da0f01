-- Stores the installation's secret ?1 unless there is one.
INSERT INTO installation (id, secret) VALUES (1, ?1) ON CONFLICT DO NOTHING
