-- Creates a table for tests of the writer.
CREATE TABLE word (text TEXT NOT NULL PRIMARY KEY) STRICT
