-- Reads the settings again.
SELECT pg_reload_conf()
