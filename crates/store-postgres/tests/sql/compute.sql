-- Computes for some ten milliseconds, and waits for nothing.
SELECT count(*) AS counted FROM generate_series(1, 100000) AS number WHERE number % 7 = 0
