-- Reads one setting of the server.
SELECT current_setting($1);
