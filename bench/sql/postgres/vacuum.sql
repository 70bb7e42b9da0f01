-- Vacuums as autovacuum would.
VACUUM (ANALYZE)
