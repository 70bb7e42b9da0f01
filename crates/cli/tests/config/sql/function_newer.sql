-- Functions of a newer program: one with a higher release, and one that is new.
UPDATE leasehold_function SET release = 999 WHERE name = 'leasehold_uuid7';
CREATE OR REPLACE FUNCTION leasehold_uuid7() RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()';
CREATE FUNCTION leasehold_uuid8() RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()';
INSERT INTO leasehold_function (name, release, checksum) VALUES ('leasehold_uuid8', 1, 1);
