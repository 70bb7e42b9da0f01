-- Sets params that are nested too deep to parse.
UPDATE workflow_execution_queue SET params = replace(hex(zeroblob(250)), '0', '[') || replace(hex(zeroblob(250)), '0', ']') WHERE id = ?1
