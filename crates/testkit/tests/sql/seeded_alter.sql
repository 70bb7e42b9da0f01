-- A change that is more than rows.
ALTER TABLE seeded ALTER COLUMN name DROP NOT NULL;
