-- The engine whose executions the store has.
-- compatible_from: 8

-- One row, from the first start that reached the engine. namespace_id tells the namespace from another of the same name.
-- certain_from: executions that were admitted from then on were started in this engine for certain. It is later than recorded_at if the engine replaced
-- another: instances with the old settings may run on for a moment.
CREATE TABLE {schema}.installation_engine (
    id smallint NOT NULL DEFAULT 1,
    kind text NOT NULL,
    namespace text NOT NULL,
    namespace_id text NOT NULL,
    cluster_id text NOT NULL,
    recorded_at timestamptz NOT NULL,
    certain_from timestamptz NOT NULL,
    CONSTRAINT installation_engine_pkey PRIMARY KEY (id),
    CONSTRAINT installation_engine_once CHECK (id = 1)
);
