-- A table for tests of the writer alone.
CREATE TABLE word (text TEXT NOT NULL PRIMARY KEY) STRICT
