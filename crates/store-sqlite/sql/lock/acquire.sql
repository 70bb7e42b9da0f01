-- Acquires a lock that is free or expired. The fencing token increases with every acquisition, also by the same owner.
INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO UPDATE
SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by,
    fencing_token = fencing_token + 1
WHERE lock_until <= ?3
RETURNING fencing_token
