-- Locks the rows of all named locks until the transaction ends.
SELECT name FROM shedlock FOR UPDATE
