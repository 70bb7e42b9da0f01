-- Gives a complete template its name, the sign that it is ready to be copied.
ALTER DATABASE {building} RENAME TO {name};
