-- Sets whether the queue $1 is shared with all workspaces, and locks the queue against other changes of its sharing.
UPDATE {schema}.queue SET shared_with_all = $2 WHERE id = $1
