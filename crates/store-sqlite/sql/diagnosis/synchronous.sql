-- How surely a commit is on disk.
PRAGMA synchronous
