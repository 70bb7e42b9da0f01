-- Returns the first corruption found in the file, or `ok`.
PRAGMA quick_check(1)
