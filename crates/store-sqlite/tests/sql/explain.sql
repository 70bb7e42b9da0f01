-- Put before a statement, says how it would be run.
EXPLAIN QUERY PLAN
