-- Requeues fresh jobs if the rows came from another cluster.
SELECT {schema}.leasehold_job_check_cluster() AS requeued
