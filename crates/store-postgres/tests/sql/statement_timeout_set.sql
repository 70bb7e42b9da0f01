-- Limits every statement of the database's new sessions, as an operator may for the role or the database.
ALTER DATABASE "{database}" SET statement_timeout = '200ms'
