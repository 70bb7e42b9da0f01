-- Makes something to find again, with one row.
CREATE TABLE kept AS SELECT 1 AS number;
