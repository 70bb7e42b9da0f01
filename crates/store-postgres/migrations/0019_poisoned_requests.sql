-- Crashes of processes while they computed the input of a request.

-- crashes: crashes in a row since the last computation that succeeded. NULL: none; almost all rows, in which the columns take no space.
-- crashes_alone: the latest of them at which the process computed nothing else.
-- crashed_process: the process that crashed last. Its crash counts once, however often it is noted.
ALTER TABLE workflow_execution_queue
    ADD COLUMN crashes smallint,
    ADD COLUMN crashes_alone smallint,
    ADD COLUMN crashed_process text,
    ADD CONSTRAINT request_crashes CHECK (
        crashes IS NULL AND crashes_alone IS NULL AND crashed_process IS NULL
        OR crashes >= 1 AND crashes_alone BETWEEN 0 AND crashes AND crashed_process IS NOT NULL
    );
