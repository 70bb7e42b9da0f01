-- Takes the table of named locks away.
DROP TABLE shedlock
