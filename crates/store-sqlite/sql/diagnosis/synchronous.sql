-- Reads the synchronous level of commits.
PRAGMA synchronous
