-- Renames a complete template to its final name, which marks it as ready to copy.
ALTER DATABASE {building} RENAME TO {name};
