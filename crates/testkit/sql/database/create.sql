-- Makes a database for one test, or for a template that is being built, as a copy of another.
CREATE DATABASE {name} TEMPLATE {template};
