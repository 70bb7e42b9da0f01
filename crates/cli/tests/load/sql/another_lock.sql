-- Writes a named lock that no service uses.
INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
VALUES ('another', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'an operator')
