-- Graphs that run on the WorkQueue: where the nodes of an execution are, and what each came to. docs/adr/0007-graphs-on-the-workqueue.md says why it looks like this.

-- One row an execution whose graph was started. Whoever changes anything of a graph locks its row first.
-- state: one letter a node, in the order the graph lists them.
-- ended, error: how the graph ended, and what went wrong.
-- deadline: when it is ended if it has not ended by then.
CREATE TABLE execution_graph (
    execution_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    deadline timestamptz,
    state text NOT NULL,
    ended text,
    error text,
    CONSTRAINT execution_graph_pkey PRIMARY KEY (execution_id),
    CONSTRAINT execution_graph_execution FOREIGN KEY (execution_id) REFERENCES workflow_execution (id) ON DELETE CASCADE,
    CONSTRAINT execution_graph_state CHECK (state <> '' AND translate(state, 'wrcfx', '') = ''),
    CONSTRAINT execution_graph_ended CHECK (ended IN ('completed', 'failed', 'timed_out', 'cancelled', 'terminated', 'lost')),
    CONSTRAINT execution_graph_finished CHECK ((ended IS NULL) = (finished_at IS NULL)),
    CONSTRAINT execution_graph_quiet CHECK (ended IS NULL OR translate(state, 'wr', '') = state)
) WITH (fillfactor = 80);

CREATE INDEX execution_graph_deadline ON execution_graph (deadline) WHERE finished_at IS NULL AND deadline IS NOT NULL;

-- The nodes that were begun, by their place in the graph's list. One that could not be given its input has no job.
-- An output is kept here and nowhere else.
CREATE TABLE execution_node (
    execution_id uuid NOT NULL,
    job_id bigint,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    node smallint NOT NULL,
    output json,
    error text,
    CONSTRAINT execution_node_pkey PRIMARY KEY (execution_id, node),
    CONSTRAINT execution_node_graph FOREIGN KEY (execution_id) REFERENCES execution_graph (execution_id) ON DELETE CASCADE,
    CONSTRAINT execution_node_place CHECK (node >= 0),
    CONSTRAINT execution_node_attempts CHECK (attempts >= 0),
    CONSTRAINT execution_node_output CHECK (output IS NULL OR (finished_at IS NOT NULL AND error IS NULL))
) WITH (fillfactor = 80);

-- Nodes whose job lost its last lease: the graph is yet to be told. It refers to no graph, since whoever finds such a job holds
-- pages of leases and must not wait for a graph.
CREATE TABLE node_spent (
    execution_id uuid NOT NULL,
    attempts integer NOT NULL,
    node smallint NOT NULL,
    error text NOT NULL,
    CONSTRAINT node_spent_pkey PRIMARY KEY (execution_id, node)
);
