-- Sets the expected content of a database as a session setting.
SELECT set_config('testkit.content', $1, false);
