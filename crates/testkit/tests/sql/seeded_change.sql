-- What a test does to rows and sequences.
UPDATE seeded SET name = 'changed';
INSERT INTO seeded (name) VALUES ('second');
INSERT INTO filled VALUES (1);
SELECT nextval('unused');
