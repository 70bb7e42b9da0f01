-- Changes rows and sequences, as a test does.
UPDATE seeded SET name = 'changed';
INSERT INTO seeded (name) VALUES ('second');
INSERT INTO filled VALUES (1);
SELECT nextval('unused');
