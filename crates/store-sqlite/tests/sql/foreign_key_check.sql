-- Lists rows whose foreign key refers to no row.
PRAGMA foreign_key_check
