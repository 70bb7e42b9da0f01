-- Writes what was filled in, so that this is not done while a claim is timed.
CHECKPOINT
