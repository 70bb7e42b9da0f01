-- Makes every partition of the event log begin so many seconds earlier.
UPDATE leasehold.event_partition SET begun_at = begun_at - make_interval(secs => $1)
