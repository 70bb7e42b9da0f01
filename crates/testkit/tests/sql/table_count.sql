-- Counts what is there to be found again.
SELECT count(*) FROM kept;
