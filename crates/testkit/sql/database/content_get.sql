-- Returns the content that content_read.sql stored in the session.
SELECT current_setting('testkit.content');
