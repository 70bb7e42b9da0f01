-- Brings what was filled in to where a running system would have it: counted, in line, and with statistics.
ANALYZE;
SELECT leasehold_fold();
ANALYZE;
