-- Pins the search_path of this transaction to the schema alone: functions that are created in it store this path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)
