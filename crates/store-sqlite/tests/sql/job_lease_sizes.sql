-- Lists the sizes of the pages of leases, oldest first.
SELECT json_group_array(size) FROM (SELECT size FROM job_lease ORDER BY token)
