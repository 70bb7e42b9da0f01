-- Every word, in the order it was written.
SELECT text FROM word ORDER BY rowid
