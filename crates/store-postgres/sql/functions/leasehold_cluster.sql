-- Returns the id of the database cluster: transaction numbers are valid only within one cluster.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_cluster() RETURNS bigint LANGUAGE sql STABLE
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
    SELECT system_identifier FROM pg_control_system()
$$
