-- Lists all words in insertion order.
SELECT text FROM word ORDER BY rowid
