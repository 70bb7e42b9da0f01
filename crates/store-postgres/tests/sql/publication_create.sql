-- Publishes every table, as an operator does who replicates the database.
CREATE PUBLICATION everything FOR ALL TABLES
