-- Who owns a queue, and which workspaces may use it. docs/adr/0020-queue-ownership.md explains the rules.

-- owner_id: the workspace that owns the queue; NULL is the installation.
ALTER TABLE queue
    ADD COLUMN owner_id uuid,
    ADD COLUMN shared_with_all boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT queue_owner FOREIGN KEY (owner_id) REFERENCES workspace (id);

CREATE INDEX queue_of_owner ON queue (owner_id) WHERE owner_id IS NOT NULL;

-- The workspaces with which a queue is shared. Rows of deleted workspaces stay: their running executions continue.
CREATE TABLE queue_share (
    queue_id integer NOT NULL,
    workspace_id uuid NOT NULL,
    CONSTRAINT queue_share_pkey PRIMARY KEY (queue_id, workspace_id),
    CONSTRAINT queue_share_queue FOREIGN KEY (queue_id) REFERENCES queue (id),
    CONSTRAINT queue_share_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id)
);

-- Existing queues belong to the installation. Each is shared with the workspaces whose versions name it, so that their graphs go on.
INSERT INTO queue (name, created_at)
SELECT n.node ->> 'queue'::text, min(v.created_at)
FROM workflow_definition_version v
CROSS JOIN LATERAL jsonb_array_elements(v.body -> 'graph'::text -> 'nodes'::text) AS n (node)
WHERE n.node ->> 'type'::text = 'task'
GROUP BY n.node ->> 'queue'::text
ON CONFLICT (name) DO NOTHING;

INSERT INTO queue_share (queue_id, workspace_id)
SELECT DISTINCT q.id, v.workspace_id
FROM workflow_definition_version v
CROSS JOIN LATERAL jsonb_array_elements(v.body -> 'graph'::text -> 'nodes'::text) AS n (node)
JOIN queue q ON q.name = n.node ->> 'queue'::text
WHERE n.node ->> 'type'::text = 'task';
