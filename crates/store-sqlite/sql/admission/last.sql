-- Reads the number of the last admission.
SELECT last FROM admission_number WHERE id = 1
