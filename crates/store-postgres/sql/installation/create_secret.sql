-- Stores the installation's secret $1 unless there is one.
INSERT INTO {schema}.installation (secret) VALUES ($1) ON CONFLICT DO NOTHING
