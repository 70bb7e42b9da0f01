-- Enqueues the confirmation of an order, in whatever transaction this runs.
SELECT leasehold_job_enqueue(queue => $1, kind => 'confirm', payload => $2)
