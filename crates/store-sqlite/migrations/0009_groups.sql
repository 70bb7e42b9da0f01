-- Groups of jobs: who takes turns in a queue. docs/adr/0027-groups-of-jobs.md explains the design.
-- compatible_from: 9

-- group_limit: how many jobs of one group may run at once. has_groups: 1 if the queue has had a job with a group or a group_limit.
ALTER TABLE queue ADD COLUMN group_limit INTEGER CONSTRAINT queue_group_limit CHECK (group_limit BETWEEN 0 AND 1000000);
ALTER TABLE queue ADD COLUMN has_groups INTEGER NOT NULL DEFAULT 0 CONSTRAINT queue_has_groups CHECK (has_groups IN (0, 1));

ALTER TABLE job ADD COLUMN group_name TEXT CONSTRAINT job_group_name CHECK (length(CAST(group_name AS BLOB)) BETWEEN 1 AND 128);

-- '': a job without group. Jobs with a group have a waiting row from the start, and are in no line.
ALTER TABLE job_waiting ADD COLUMN group_name TEXT NOT NULL DEFAULT '';

DROP INDEX job_waiting_line;
CREATE INDEX job_waiting_line ON job_waiting (queue_id, group_name, priority DESC, created_at, job_id) WHERE ready = 1;

-- The groups of queues with has_groups that may have a job due, or have running jobs in a queue with a group_limit.
-- group_name: '' is the group of jobs without one.
-- turn: ready groups give one job each in this order.
-- has_jobs: 0 if no job is due; 1 if one may be.
-- ready: 1 if has_jobs is 1 and fewer jobs run than group_limit.
-- running: its running jobs; 0 in queues without group_limit.
CREATE TABLE job_group (
    queue_id INTEGER NOT NULL,
    group_name TEXT NOT NULL,
    turn INTEGER NOT NULL,
    has_jobs INTEGER NOT NULL,
    ready INTEGER NOT NULL,
    running INTEGER NOT NULL,
    CONSTRAINT job_group_pkey PRIMARY KEY (queue_id, group_name),
    CONSTRAINT job_group_has_jobs CHECK (has_jobs IN (0, 1)),
    CONSTRAINT job_group_ready CHECK (ready IN (0, 1) AND ready <= has_jobs),
    CONSTRAINT job_group_running CHECK (running >= 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_group_turn ON job_group (queue_id, turn);
CREATE INDEX job_group_round ON job_group (queue_id, turn) WHERE ready = 1;
