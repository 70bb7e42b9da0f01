-- Returns the largest number of late transactions in a cursor.
SELECT coalesce(max(cardinality(late_xid)), 0)::bigint AS passed FROM leasehold.job_cursor
