-- Inserts a word.
INSERT INTO word (text) VALUES (?1)
