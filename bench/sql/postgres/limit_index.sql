-- Creates the only index besides the primary key.
CREATE INDEX plain_line ON plain (queue_id, priority, xid, id)
