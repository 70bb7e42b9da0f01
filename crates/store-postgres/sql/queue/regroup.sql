-- Applies a changed group_limit to the groups of the queue $1. $2: the offset of transaction numbers.
SELECT {schema}.leasehold_job_regroup($1, $2) AS has_groups
