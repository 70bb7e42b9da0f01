-- Reads the journal mode.
PRAGMA journal_mode
