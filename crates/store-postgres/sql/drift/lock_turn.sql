-- Locks the turn row of workspace $1, so that nothing is admitted there until the transaction ends.
SELECT workspace_id FROM {schema}.workspace_turn WHERE workspace_id = $1 ORDER BY turn DESC LIMIT 1 FOR UPDATE
