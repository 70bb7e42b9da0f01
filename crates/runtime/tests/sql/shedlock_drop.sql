-- Drops the table of named locks.
DROP TABLE shedlock
