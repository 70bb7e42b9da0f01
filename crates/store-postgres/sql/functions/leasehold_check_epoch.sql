-- Rejects a call in a database that was moved to another cluster, until a process has opened its epoch there; for functions that SQL callers use.
-- release: 1
-- Its transaction numbers would belong neither to the old cluster nor to the epoch. A caller in the middle of a transaction cannot open it:
-- everyone would wait for that transaction.
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_epoch() RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    IF (SELECT e.system_identifier FROM {schema}.epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1)
        <> (SELECT s.system_identifier FROM pg_control_system() s)
    THEN
        RAISE EXCEPTION 'the database was moved to another cluster, and no instance of Leasehold has connected to it since'
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start an instance of Leasehold, then repeat the transaction.';
    END IF;
END
$$
