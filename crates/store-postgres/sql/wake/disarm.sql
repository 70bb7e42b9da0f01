-- Gives the seat of a sleeper back; from here on nobody notifies.
SELECT pg_advisory_unlock_all()
