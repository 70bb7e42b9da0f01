-- Locks a whole table.
LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE
