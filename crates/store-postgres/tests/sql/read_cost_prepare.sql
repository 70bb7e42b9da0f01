-- Prepares a statement of the store under a name that EXPLAIN can use.
PREPARE read_cost ({types}) AS {statement}
