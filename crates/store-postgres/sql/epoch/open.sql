-- Returns the epoch of the present; opens it for the process $1, which has seen the transaction $2 and the job $3, if it is not known.
SELECT id, cause, token_base, job_xid_offset, first_event_id, opened FROM {schema}.leasehold_epoch_open($1, $2, $3)
