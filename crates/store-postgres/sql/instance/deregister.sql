-- Deletes an instance.
DELETE FROM {schema}.instance WHERE id = $1
