-- Generates a time-ordered id (UUID version 7), like those that the program generates.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_uuid7() RETURNS uuid LANGUAGE sql VOLATILE
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
    SELECT pg_catalog.encode(
        set_byte(set_byte(
            overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000::numeric)::bigint) FROM 3)
                FROM 1 FOR 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 6) & 15) | 112),
            8, (get_byte(uuid_send(gen_random_uuid()), 8) & 63) | 128), 'hex')::uuid
$$
