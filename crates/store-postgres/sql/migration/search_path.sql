-- Pins the search_path of this transaction to the schema alone: functions that are created in it store this path.
SELECT pg_catalog.set_config('search_path', '{schema}, pg_temp', true)
