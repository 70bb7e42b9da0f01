-- How often leasehold_wake was called.
SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS calls FROM wake_calls
