-- Returns what the session read.
SELECT current_setting('testkit.content');
