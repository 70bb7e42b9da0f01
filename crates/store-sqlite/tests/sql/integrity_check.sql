-- Checks the whole file, and every constraint of every row.
PRAGMA integrity_check
