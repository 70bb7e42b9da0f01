-- Raises the fencing token of a lock that is inserted, or whose holder changes, above those of earlier epochs; for triggers.
-- release: 1
-- Acquiring a lock writes locked_at; extending or releasing it does not. So the token rises with every change of holder,
-- even if the new holder does not write tokens. An update that raises the token itself is not changed.
-- SECURITY DEFINER, because programs that share the table need no access to others. Before a process has opened the epoch of a started server,
-- the time stands for the token base.
CREATE OR REPLACE FUNCTION {schema}.leasehold_shedlock_token() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
    base bigint;
BEGIN
    SELECT CASE WHEN e.server_started_at = pg_postmaster_start_time() THEN e.token_base
        ELSE greatest(e.token_base,
            (extract(epoch FROM clock_timestamp() - '2026-01-01 00:00:00+00'::timestamptz) * 1000::numeric)::bigint << 10) END
    INTO base FROM {schema}.epoch e ORDER BY e.number DESC, e.opened_at DESC, e.id DESC LIMIT 1;
    NEW.fencing_token := greatest(CASE WHEN TG_OP = 'INSERT'::text THEN NEW.fencing_token ELSE OLD.fencing_token + 1::bigint END,
        coalesce(base, 0::bigint) + 1::bigint);
    RETURN NEW;
END
$$
