-- How what is written is logged.
PRAGMA journal_mode
