-- Reads SQLite's version, the file's path, its size and its unused bytes.
SELECT sqlite_version() AS version, (SELECT file FROM pragma_database_list WHERE name = 'main') AS file,
    p.page_count * s.page_size AS bytes, f.freelist_count * s.page_size AS free_bytes
FROM pragma_page_count p, pragma_page_size s, pragma_freelist_count f
