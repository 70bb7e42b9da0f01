-- Undoes what one operation of a group did; the others are not touched.
ROLLBACK TO operation
