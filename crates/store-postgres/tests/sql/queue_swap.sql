-- Makes the queues a and b, which have no open jobs, ones with other ids: each gets the id of the other.
DO $$
BEGIN
    UPDATE leasehold.queue SET name = 'swapped' WHERE name = 'a';
    UPDATE leasehold.queue SET name = 'a' WHERE name = 'b';
    UPDATE leasehold.queue SET name = 'b' WHERE name = 'swapped';
    UPDATE leasehold.job_line l SET queue = q.name FROM leasehold.queue q WHERE q.id = l.queue_id;
END
$$
