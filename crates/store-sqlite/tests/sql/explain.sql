-- Prefix that shows the query plan of a statement.
EXPLAIN QUERY PLAN
