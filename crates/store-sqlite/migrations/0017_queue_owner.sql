-- Who owns a queue, and which workspaces may use it.

-- The workspace that owns the queue; NULL is the installation.
ALTER TABLE queue ADD COLUMN owner_id BLOB CONSTRAINT queue_owner REFERENCES workspace (id);
ALTER TABLE queue ADD COLUMN shared_with_all INTEGER NOT NULL DEFAULT 0 CONSTRAINT queue_shared_with_all CHECK (shared_with_all IN (0, 1));

CREATE INDEX queue_of_owner ON queue (owner_id) WHERE owner_id IS NOT NULL;

-- The workspaces with which a queue is shared. Rows of deleted workspaces stay: their running executions continue.
CREATE TABLE queue_share (
    queue_id INTEGER NOT NULL,
    workspace_id BLOB NOT NULL,
    CONSTRAINT queue_share_pkey PRIMARY KEY (queue_id, workspace_id),
    CONSTRAINT queue_share_queue FOREIGN KEY (queue_id) REFERENCES queue (id),
    CONSTRAINT queue_share_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (id)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_share_of_workspace ON queue_share (workspace_id);

-- Existing queues belong to the installation. Each is shared with the workspaces whose versions name it, so that their graphs go on.
INSERT INTO queue (name, lease_us, max_attempts, backoff_base_us, backoff_factor, backoff_max_us, backoff_jitter, created_at)
SELECT n.value ->> 'queue', 30000000, 25, 1000000, 2, 300000000, 0.2, min(v.created_at)
FROM workflow_definition_version v, json_each(v.body, '$.graph.nodes') n
WHERE n.value ->> 'type' = 'task'
GROUP BY n.value ->> 'queue'
ON CONFLICT (name) DO NOTHING;

INSERT INTO queue_share (queue_id, workspace_id)
SELECT DISTINCT q.id, v.workspace_id
FROM workflow_definition_version v, json_each(v.body, '$.graph.nodes') n
JOIN queue q ON q.name = n.value ->> 'queue'
WHERE n.value ->> 'type' = 'task';
