-- Writes a copy of the open file to ?1, as a backup does.
VACUUM INTO ?1
