-- Corrects the recorded figures of workspace $1. Returns whether one was wrong.
SELECT {schema}.leasehold_recount($1) AS was_wrong
