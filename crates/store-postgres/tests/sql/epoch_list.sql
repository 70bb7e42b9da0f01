-- Returns the causes of the epochs in their order.
SELECT cause FROM leasehold.epoch ORDER BY number
