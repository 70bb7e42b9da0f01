-- Creates a table with one row, an empty table and a sequence.
CREATE TABLE seeded (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL);
CREATE TABLE filled (id bigint PRIMARY KEY REFERENCES seeded);
CREATE SEQUENCE unused;
INSERT INTO seeded (name) VALUES ('first');
