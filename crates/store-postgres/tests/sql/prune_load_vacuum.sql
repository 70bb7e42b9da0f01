-- Removes dead rows and updates statistics, as autovacuum does.
VACUUM (ANALYZE)
