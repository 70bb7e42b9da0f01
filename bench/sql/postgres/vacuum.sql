-- What the server would do by itself after a while.
VACUUM (ANALYZE)
