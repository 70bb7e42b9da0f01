-- Reads all rows and the next values of both sequences.
SELECT (SELECT string_agg(format('%s %s', id, name), ', ') FROM seeded) AS seeded,
       (SELECT count(*) FROM filled) AS filled,
       nextval('unused') AS unused,
       nextval('seeded_id_seq') AS id;
