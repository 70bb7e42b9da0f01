-- Grants EXECUTE on functions, as users do.
GRANT EXECUTE ON FUNCTION leasehold_enqueue TO pg_read_all_stats;
GRANT EXECUTE ON FUNCTION leasehold_job_enqueue TO PUBLIC;
REVOKE EXECUTE ON FUNCTION leasehold_fold FROM PUBLIC;
GRANT EXECUTE ON FUNCTION leasehold_fold TO pg_read_all_stats WITH GRANT OPTION;
