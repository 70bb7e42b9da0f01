-- The engine whose executions the store has.
-- compatible_from: 8

-- One row, from the first start that reached the engine. namespace_id tells the namespace from another of the same name.
-- certain_from: executions that were admitted from then on were started in this engine for certain. It is later than recorded_at if the engine replaced
-- another: instances with the old settings may run on for a moment.
CREATE TABLE installation_engine (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    cluster_id TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    certain_from INTEGER NOT NULL
) STRICT;
