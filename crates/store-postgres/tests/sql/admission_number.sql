-- Returns the last admission number: a claim takes one for each workspace whose turn it ends.
SELECT last_value FROM leasehold.admission_number
