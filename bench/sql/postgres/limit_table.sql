-- Creates a plain table with the columns of jobs, a primary key and one index: the database's upper limit.
CREATE TABLE plain (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_at timestamptz,
    timeout_us bigint,
    backoff_base_us bigint,
    backoff_max_us bigint,
    backoff_factor double precision,
    backoff_jitter double precision,
    queue_id integer NOT NULL,
    max_attempts integer,
    priority smallint NOT NULL DEFAULT 0,
    kind text NOT NULL,
    payload json NOT NULL,
    trace_context text
)
