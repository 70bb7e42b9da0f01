-- Stores the number of the last admission.
UPDATE admission_number SET last = ?1 WHERE id = 1
