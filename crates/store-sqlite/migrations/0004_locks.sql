-- Named locks, with the columns of Java's ShedLock.
-- compatible_from: 4

CREATE TABLE shedlock (
    name TEXT NOT NULL,
    lock_until INTEGER NOT NULL,
    locked_at INTEGER NOT NULL,
    locked_by TEXT NOT NULL,
    fencing_token INTEGER NOT NULL DEFAULT 1,
    CONSTRAINT shedlock_pkey PRIMARY KEY (name),
    CONSTRAINT shedlock_name_length CHECK (length(name) BETWEEN 1 AND 64)
) STRICT;

-- Increases with every acquisition, also by clients that do not know the token, such as Java's ShedLock.
CREATE TRIGGER shedlock_token AFTER UPDATE OF locked_at, locked_by ON shedlock
WHEN NEW.fencing_token = OLD.fencing_token AND (NEW.locked_at <> OLD.locked_at OR NEW.locked_by <> OLD.locked_by)
BEGIN
    UPDATE shedlock SET fencing_token = OLD.fencing_token + 1 WHERE name = NEW.name;
END;
