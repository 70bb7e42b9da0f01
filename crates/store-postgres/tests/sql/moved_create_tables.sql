-- Creates the tables of more partitions of the event log, as a dump of the source's schema does.
DO $$
BEGIN
    FOR number IN 10..20 LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS leasehold.request_event_%s (LIKE leasehold.request_event INCLUDING ALL EXCLUDING IDENTITY,'
            ' CONSTRAINT request_event_ids CHECK (id >= %s AND id < %s))', number, number::bigint << 40, (number + 1)::bigint << 40);
    END LOOP;
END
$$
