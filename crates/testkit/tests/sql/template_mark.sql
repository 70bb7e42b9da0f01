-- Marks a database as a template, which PostgreSQL refuses to drop.
ALTER DATABASE {name} IS_TEMPLATE true
