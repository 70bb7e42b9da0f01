-- Lists the partitions that have begun, whether each is sealed, and from which id on folds read.
SELECT p.number, p.sealed IS NOT NULL AS is_sealed, (SELECT f.events_from FROM leasehold.request_fold f ORDER BY f.id DESC LIMIT 1) AS events_from
FROM leasehold.event_partition p ORDER BY p.number
