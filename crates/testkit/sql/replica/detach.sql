-- Stops the reception of a replica when the settings are read again.
ALTER SYSTEM SET primary_conninfo = ''
