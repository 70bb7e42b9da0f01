-- As a careless hand does: from here on requests move as anybody likes.
DROP TRIGGER request_transition
