-- Corrects the recorded figures of a workspace.
SELECT leasehold.leasehold_recount($1) AS was_wrong
