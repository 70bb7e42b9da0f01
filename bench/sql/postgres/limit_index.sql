-- The one index beside its key.
CREATE INDEX plain_line ON plain (queue_id, priority, xid, id)
