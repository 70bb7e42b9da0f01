-- Takes the one seat of a sleeper, unless another has it; then waits for all that found nobody asleep (leasehold_wake). From
-- here on everybody notifies.
WITH seat AS MATERIALIZED (
    SELECT pg_try_advisory_lock(7308332188) AS taken
)
SELECT taken, CASE WHEN taken THEN pg_advisory_lock(7308332187) END FROM seat
