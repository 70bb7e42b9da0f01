-- Locks an event of a finished request, and writes the request.
WITH held AS (
    SELECT e.request_id FROM leasehold.request_event e JOIN leasehold.workflow_execution_queue q ON q.id = e.request_id
    WHERE q.status = 'COMPLETED' LIMIT 1
    FOR UPDATE OF e
)
UPDATE leasehold.workflow_execution_queue q SET last_error = 'held' FROM held h WHERE q.id = h.request_id
