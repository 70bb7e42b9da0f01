-- Commits of whoever does not say otherwise may be lost in a crash.
ALTER DATABASE {database} SET synchronous_commit = off
