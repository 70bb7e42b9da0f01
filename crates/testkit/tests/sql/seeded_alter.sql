-- Changes the schema.
ALTER TABLE seeded ALTER COLUMN name DROP NOT NULL;
