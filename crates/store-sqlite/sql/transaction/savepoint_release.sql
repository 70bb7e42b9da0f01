-- Keeps the writes of one operation.
RELEASE operation
