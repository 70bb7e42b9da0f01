-- Drops the trigger that checks transitions, so that a test can write invalid ones.
DROP TRIGGER request_transition
