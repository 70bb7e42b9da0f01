-- Turns the check of function bodies on or off for this transaction: off while tables that the bodies name do not exist yet.
SELECT pg_catalog.set_config('check_function_bodies', $1, true)
