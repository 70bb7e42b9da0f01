-- Runs a checkpoint now, so that none runs during a measurement.
CHECKPOINT
