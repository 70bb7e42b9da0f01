-- Begins a transaction and takes its snapshot.
BEGIN; SET TRANSACTION ISOLATION LEVEL {isolation}; SELECT count(*) FROM leasehold.workflow_execution
