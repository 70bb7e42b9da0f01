-- Takes the one seat of a sleeping worker, unless another has it; then waits for all that found nobody asleep. From here on
-- whoever brings a job notifies.
WITH seat AS MATERIALIZED (
    SELECT pg_try_advisory_lock(7308332190) AS taken
)
SELECT taken, CASE WHEN taken THEN pg_advisory_lock(7308332189) END FROM seat
