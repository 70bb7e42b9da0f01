-- Graphs that run on the WorkQueue: the state and the outputs of their nodes.
-- compatible_from: 6
-- docs/adr/0007-graphs-on-the-workqueue.md explains the design.

-- One row for each execution whose graph was started. Every change of a graph locks this row first.
-- state: one letter for each node, in the order of the graph.
-- ended, error: how the graph ended, and why it failed.
-- deadline: when the graph times out.
CREATE TABLE {schema}.execution_graph (
    execution_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    deadline timestamptz,
    state text NOT NULL,
    ended text,
    error text,
    CONSTRAINT execution_graph_pkey PRIMARY KEY (execution_id),
    CONSTRAINT execution_graph_execution FOREIGN KEY (execution_id) REFERENCES {schema}.workflow_execution (id) ON DELETE CASCADE,
    CONSTRAINT execution_graph_state CHECK (state <> '' AND translate(state, 'wrcfx', '') = ''),
    CONSTRAINT execution_graph_ended CHECK (ended IN ('completed', 'failed', 'timed_out', 'cancelled', 'terminated', 'lost')),
    CONSTRAINT execution_graph_finished CHECK ((ended IS NULL) = (finished_at IS NULL)),
    CONSTRAINT execution_graph_quiet CHECK (ended IS NULL OR translate(state, 'wr', '') = state)
) WITH (fillfactor = 80);

CREATE INDEX execution_graph_deadline ON {schema}.execution_graph (deadline) WHERE finished_at IS NULL AND deadline IS NOT NULL;

-- The started nodes, by their index in the graph. A node whose input could not be built has no job. Outputs are stored only
-- here.
CREATE TABLE {schema}.execution_node (
    execution_id uuid NOT NULL,
    job_id bigint,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    node smallint NOT NULL,
    output json,
    error text,
    CONSTRAINT execution_node_pkey PRIMARY KEY (execution_id, node),
    CONSTRAINT execution_node_graph FOREIGN KEY (execution_id) REFERENCES {schema}.execution_graph (execution_id) ON DELETE CASCADE,
    CONSTRAINT execution_node_place CHECK (node >= 0),
    CONSTRAINT execution_node_attempts CHECK (attempts >= 0),
    CONSTRAINT execution_node_output CHECK (output IS NULL OR (finished_at IS NOT NULL AND error IS NULL))
) WITH (fillfactor = 80);

-- Nodes whose job lost its last lease, until their graph is ended. No foreign key to the graph: the transaction that inserts
-- holds pages of leases and must not wait for a graph.
CREATE TABLE {schema}.node_spent (
    execution_id uuid NOT NULL,
    attempts integer NOT NULL,
    node smallint NOT NULL,
    error text NOT NULL,
    CONSTRAINT node_spent_pkey PRIMARY KEY (execution_id, node)
);
