-- Begins a transaction that has looked at the executions.
BEGIN; SET TRANSACTION ISOLATION LEVEL {isolation}; SELECT count(*) FROM workflow_execution
