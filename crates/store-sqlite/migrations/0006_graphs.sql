-- Graphs that run on the WorkQueue: the state and the outputs of their nodes.
-- compatible_from: 6
-- docs/adr/0007-graphs-on-the-workqueue.md explains the design.

-- One row for each execution whose graph was started.
-- state: one letter for each node, in the order of the graph.
-- ended, error: how the graph ended, and why it failed.
-- deadline: when the graph times out.
CREATE TABLE execution_graph (
    execution_id BLOB NOT NULL,
    state TEXT NOT NULL,
    ended TEXT,
    error TEXT,
    deadline INTEGER,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    CONSTRAINT execution_graph_pkey PRIMARY KEY (execution_id),
    CONSTRAINT execution_graph_execution FOREIGN KEY (execution_id) REFERENCES workflow_execution (id) ON DELETE CASCADE,
    CONSTRAINT execution_graph_state CHECK (length(state) > 0 AND state NOT GLOB '*[^wrcfx]*'),
    CONSTRAINT execution_graph_ended CHECK (ended IN ('completed', 'failed', 'timed_out', 'cancelled', 'terminated', 'lost')),
    CONSTRAINT execution_graph_finished CHECK ((ended IS NULL) = (finished_at IS NULL)),
    CONSTRAINT execution_graph_quiet CHECK (ended IS NULL OR state NOT GLOB '*[wr]*')
) STRICT;

CREATE INDEX execution_graph_deadline ON execution_graph (deadline) WHERE finished_at IS NULL AND deadline IS NOT NULL;

-- The started nodes, by their index in the graph. A node whose input could not be built has no job. Outputs are stored only
-- here.
CREATE TABLE execution_node (
    execution_id BLOB NOT NULL,
    node INTEGER NOT NULL,
    job_id INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    output TEXT,
    error TEXT,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    CONSTRAINT execution_node_pkey PRIMARY KEY (execution_id, node),
    CONSTRAINT execution_node_graph FOREIGN KEY (execution_id) REFERENCES execution_graph (execution_id) ON DELETE CASCADE,
    CONSTRAINT execution_node_place CHECK (node >= 0),
    CONSTRAINT execution_node_attempts CHECK (attempts >= 0),
    CONSTRAINT execution_node_output CHECK (output IS NULL OR (finished_at IS NOT NULL AND error IS NULL))
) STRICT;

-- Nodes whose job lost its last lease and whose graph has not processed that yet.
CREATE TABLE node_spent (
    execution_id BLOB NOT NULL,
    node INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    error TEXT NOT NULL,
    CONSTRAINT node_spent_pkey PRIMARY KEY (execution_id, node),
    CONSTRAINT node_spent_graph FOREIGN KEY (execution_id) REFERENCES execution_graph (execution_id) ON DELETE CASCADE
) STRICT;
