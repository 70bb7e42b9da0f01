-- Discards cached plans, so that the next use of a statement plans for the current size of the tables.
DISCARD PLANS
