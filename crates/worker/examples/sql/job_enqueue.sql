-- Enqueues the confirmation of an order in the current transaction.
SELECT leasehold.leasehold_job_enqueue(queue => $1, kind => 'confirm', payload => $2)
