-- Counts the workspaces and their requests by status, as maintained by triggers.
SELECT count(*) AS workspaces, coalesce(sum(pending), 0) AS pending, coalesce(sum(claimed), 0) AS claimed,
    coalesce(sum(dispatched), 0) AS dispatched, coalesce(sum(completed), 0) AS completed, coalesce(sum(failed), 0) AS failed
FROM workspace_turn WHERE deleted = 0
