-- Sets the lines right if the rows came from another cluster.
SELECT leasehold_job_settle_in() AS moved
