-- Creates a database for one test or for a template under construction, as a copy of another database.
CREATE DATABASE {name} TEMPLATE {template};
