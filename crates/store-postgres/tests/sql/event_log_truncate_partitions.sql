-- Empties the list of partitions, as an operator may by mistake.
TRUNCATE leasehold.event_partition
