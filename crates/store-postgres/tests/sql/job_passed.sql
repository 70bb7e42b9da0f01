-- How many transactions the lines remember to have passed.
SELECT coalesce(max(cardinality(late_xid)), 0)::bigint AS passed FROM job_cursor
