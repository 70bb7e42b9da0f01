-- Returns how often leasehold_notify was called.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS calls FROM leasehold.notify_calls
