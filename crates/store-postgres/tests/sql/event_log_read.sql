-- Reads every event, and keeps the tables locked until the transaction ends.
SELECT count(*) FROM leasehold.request_event
