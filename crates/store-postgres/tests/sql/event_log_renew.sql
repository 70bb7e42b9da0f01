-- Makes every partition of the event log begin now: the database may be a copy of an older one.
UPDATE leasehold.event_partition SET begun_at = clock_timestamp()
