-- Prepares a session to run schema.sql: like pg_dump's script, it names every object in full, and its functions may call later ones.
SET check_function_bodies = false;
SET search_path = '';
