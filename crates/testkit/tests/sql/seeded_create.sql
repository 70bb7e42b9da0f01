-- A template with a table that has a row and one that is empty.
CREATE TABLE seeded (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL);
CREATE TABLE filled (id bigint PRIMARY KEY REFERENCES seeded);
CREATE SEQUENCE unused;
INSERT INTO seeded (name) VALUES ('first');
