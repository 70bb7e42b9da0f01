-- Creates a table with one row, which must survive a restart.
CREATE TABLE survivor AS SELECT 1 AS number;
