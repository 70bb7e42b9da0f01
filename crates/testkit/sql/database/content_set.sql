-- Tells the session what a database must hold.
SELECT set_config('testkit.content', $1, false);
