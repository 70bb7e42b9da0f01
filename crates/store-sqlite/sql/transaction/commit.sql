-- Makes a whole group durable.
COMMIT
